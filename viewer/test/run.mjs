// run.mjs [chromium|firefox] [FILE...]: runs the tests, or says why it cannot and ends with 4, which ctest counts as skipped.
import { spawnSync } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const browsers = {
  chromium: { find: async () => (await import('./browser.mjs')).findChromium(), tests: ['format', 'process', 'workers', 'page', 'real'], missing: 'there is no Chromium; the package is chromium, or MEMPROF_TEST_CHROMIUM names one' },
  firefox: { find: async () => (await import('./firefox.mjs')).findFirefox(), tests: ['firefox'], missing: 'there is no Firefox; the package is firefox-esr, or MEMPROF_TEST_FIREFOX names one' },
};
const [name = 'chromium', ...files] = process.argv.slice(2);
const browser = browsers[name];
if (!browser) {
  console.error(`no such browser: ${name}; there are ${Object.keys(browsers).join(' and ')}`);
  process.exit(2);
}
let found = null;
try {
  found = await browser.find();
} catch (error) {
  console.log(`skipped: ${error.message.split('\n')[0]}; 'npm ci' in viewer/ installs it`);
  process.exit(4);
}
if (!found) {
  console.log(`skipped: ${browser.missing}`);
  process.exit(4);
}
const all = browser.tests.map((test) => join(here, `${test}.test.mjs`));
const { status } = spawnSync(process.execPath, ['--test', ...(files.length > 0 ? files : all)], { stdio: 'inherit' });
process.exit(status ?? 1);
