// Runs the tests, or says why it cannot and ends with 4, which ctest counts as skipped.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
let found = null;
try {
  found = await (await import('./browser.mjs')).findChromium();
} catch (error) {
  console.log(`skipped: ${error.message.split('\n')[0]}; 'npm ci' in viewer/ installs it`);
  process.exit(4);
}
if (!found) {
  console.log('skipped: there is no Chromium; the package is chromium, or MEMPROF_CHROMIUM names one');
  process.exit(4);
}
const files = process.argv.slice(2);
const all = ['page', 'real'].map((name) => join(here, `${name}.test.mjs`));
const { status } = spawnSync(process.execPath, ['--test', ...(files.length > 0 ? files : all)], { stdio: 'inherit' });
process.exit(status ?? 1);
