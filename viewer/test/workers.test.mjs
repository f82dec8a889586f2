// What the page says of work that no operation asked for, as memprof's text does (report/text/worker_section.hpp).
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = join(dirname(fileURLToPath(import.meta.url)), '../src');
const { outputFiles } = await build({ entryPoints: [join(source, 'data/workers.ts')], bundle: true, format: 'esm', write: false });
const { workerLines } = await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString('base64')}`);

const space = { name: 'cpu', allocations: 1000 };
const operation = (allocated, inferred, parent = -1) => ({ parent, usage: [{ space: 'cpu', allocated, inferred }, { space: 'cuda:0', allocated: 1e6, inferred: 1e6 }] });
const linesOf = (...operations) => workerLines({ operations }, space);

describe('work without an operation', () => {
  it('is named with what to do, if it is more than a tenth', () => {
    assert.deepEqual(linesOf(operation(500), operation(160), operation(400, undefined, 0)), [
      '34.0 % of the bytes allocated had no operation; if other threads allocate them: adopt_operation, or infer_operations (MEMPROF_INFER_OPERATIONS, memprof run --infer-operations)',
    ]);
    assert.deepEqual(linesOf(operation(900)), []);
    assert.deepEqual(linesOf(), []);
  });

  it('is divided where operations were inferred', () => {
    assert.deepEqual(linesOf(operation(800, 120)), [
      '20.0 % of the bytes allocated had no operation',
      '12.0 % of the bytes allocated are in an operation that was inferred (infer_operations)',
    ]);
  });
});
