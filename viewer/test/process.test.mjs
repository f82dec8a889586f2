// What the page says of a process beside what was recorded, as memprof's text does (report/text/process_section.hpp).
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { processReading } from './sample.mjs';

const source = join(dirname(fileURLToPath(import.meta.url)), '../src');
const { outputFiles } = await build({ entryPoints: [join(source, 'data/process.ts')], bundle: true, format: 'esm', write: false });
const { isProcessIncomplete, processLine } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString('base64')}`);

const MiB = 2 ** 20;
const profileOf = (...rows) => ({
  mode: 'normal',
  spaces: [{ name: 'cpu' }],
  facts: { process_memory: rows.map((row) => ({ ...processReading, moment: 'most_resident', ...row })) },
});

describe('the process', () => {
  it('has a line where what it held is known', () => {
    const known = { resident_bytes: 100 * MiB, anonymous_bytes: 90 * MiB, recorded_bytes: 80 * MiB, unrecorded_heap_bytes: 0 };
    assert.equal(processLine(profileOf(known)), 'process 100 MiB resident: 80.0 MiB recorded, 0 B heap not recorded (malloc)');
    assert.equal(isProcessIncomplete(profileOf(known)), false);
    assert.equal(isProcessIncomplete(profileOf({ ...known, unrecorded_heap_bytes: 6 * MiB })), true);
    assert.equal(processLine({ ...profileOf(known), mode: 'no_dispatch' }), '');
    assert.equal(processLine({ ...profileOf(known), spaces: [{ name: 'cuda:0' }] }), '');
    assert.equal(processLine(profileOf()), '');
  });

  it('has one where heap was not recorded and the resident bytes are unknown', () => {
    const first = { resident_bytes: 4 * MiB, anonymous_bytes: 4 * MiB, unrecorded_heap_bytes: 0 };
    const later = { moment: 'most_unrecorded', heap_bytes: 400 * MiB, recorded_bytes: 1000, unrecorded_heap_bytes: 30 * MiB };
    assert.equal(processLine(profileOf(first, later)), 'process resident unknown: 1000 B recorded, 30.0 MiB heap not recorded (malloc)');
    assert.equal(isProcessIncomplete(profileOf(first, later)), true);
    const few = { ...later, unrecorded_heap_bytes: 20 * MiB }; // 5 % of the heap
    assert.equal(processLine(profileOf(first, few)), 'process 4.00 MiB resident: 0 B recorded, 0 B heap not recorded (malloc)');
    assert.equal(isProcessIncomplete(profileOf(first, few)), false);
    assert.equal(processLine(profileOf(few)), '');
  });

  it('does not pass what was read when the capture began alone for that of the run', () => {
    const first = { moment: 'first', time_ns: 1000, resident_bytes: 4 * MiB, anonymous_bytes: 4 * MiB, unrecorded_heap_bytes: 0 };
    const most = { ...first, moment: 'most_resident' };
    const line = (last) => processLine(profileOf(first, { ...last, moment: 'last' }, most));
    const beginAlone = 'process 4.00 MiB resident when the capture began, not read later';
    assert.equal(line(first), beginAlone); // the process left by _exit
    assert.equal(line({ time_ns: 2000 }), beginAlone); // it has closed the file
    assert.equal(line({ ...first, time_ns: 2000, resident_bytes: 3 * MiB }), 'process 4.00 MiB resident: 0 B recorded, 0 B heap not recorded (malloc)');
  });

  it('names what may be of another malloc, and is incomplete if it grew by more than twice what was recorded', () => {
    const most = { resident_bytes: 100 * MiB, anonymous_bytes: 90 * MiB, recorded_bytes: 30 * MiB };
    assert.equal(processLine(profileOf(most)), 'process 100 MiB resident: 30.0 MiB recorded, 60.0 MiB not recorded (another malloc, or mmap)');
    assert.equal(isProcessIncomplete(profileOf(most)), true);
    const first = { ...most, moment: 'first', anonymous_bytes: 20 * MiB };
    assert.equal(isProcessIncomplete(profileOf(first, most)), true);
    assert.equal(isProcessIncomplete(profileOf({ ...first, anonymous_bytes: 40 * MiB }, most)), false); // by 50 MiB
    assert.equal(isProcessIncomplete(profileOf(first, most, { ...most, moment: 'most_recorded', recorded_bytes: 36 * MiB })), false);
    assert.equal(isProcessIncomplete(profileOf(first, most, { ...most, moment: 'last', unrecorded_heap_bytes: 0 })), false);
    const small = { resident_bytes: 100 * MiB, anonymous_bytes: 35 * MiB, recorded_bytes: 30 * MiB }; // 5 % is not notable
    assert.equal(processLine(profileOf(small)), 'process 100 MiB resident: 30.0 MiB recorded');
    assert.equal(isProcessIncomplete(profileOf(small)), false);
  });

  it('has upper bounds where more was allocated than is resident', () => {
    const reading = { resident_bytes: 36 * MiB, anonymous_bytes: 33 * MiB, recorded_bytes: 1000 * MiB, unrecorded_heap_bytes: 32 * MiB, heap_before_bytes: 0 };
    assert.equal(processLine(profileOf(reading)), 'process 36.0 MiB resident: up to 33.0 MiB recorded, up to 32.0 MiB heap not recorded (malloc)');
  });
});
