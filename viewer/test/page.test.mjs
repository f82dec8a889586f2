import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { close, countProcessorTime, eventually, exactBytes, follow, goTo, launch, open, rowsOf, runIn, settle, shot, shownBytes, state, tipAt, write } from './browser.mjs';
import { huge, processReading, Recorder, runOf, training } from './sample.mjs';

const GiB = 2 ** 30;
let browser;
before(async () => (browser = await launch()));
after(() => browser?.close());

/** Runs a test on a page, and then sees that the page said nothing and loaded nothing. */
async function on(name, run, options, test) {
  const path = await write(name, run);
  const page = await open(browser, path, options);
  let passed = false;
  try {
    await test(page, path);
    assert.deepEqual(page.messages, []);
    passed = true;
  } finally {
    await close(page, passed);
  }
}

const trained = () => runOf(training(), { capacities: [0, GiB], device: 'gpu-1gb', reserved: [0, 80 * 2 ** 20], stepEnd: 'OPTIMIZER_STEP' });
const main = (run) => run.profile.spaces.find((s) => s.name === 'cuda:0');
const text = (page, selector) => page.locator(selector).first().innerText();
const press = async (page, key) => {
  await page.keyboard.press(key);
  await settle(page);
};

describe('answers', () => {
  it('say what the profile says', async () => {
    await on('training', trained(), {}, async (page, path) => {
      const run = runIn(await readFile(path, 'latin1'));
      const space = main(run);
      assert.equal(await text(page, '[data-answer=peak] .value'), shownBytes(space.cumulative_peak));
      assert.equal(await page.locator('[data-answer=peak] .value').getAttribute('title'), exactBytes(space.cumulative_peak));
      assert.match(await text(page, '[data-answer=peak]'), new RegExp(`in ${run.profile.segments[space.peak_segment].name}, step 4 of 4`));
      assert.match(await text(page, '[data-answer=peak]'), new RegExp(`reached by ${space.peak_operation}`));
      for (const { owner, bytes } of space.live_at_peak.by_category) {
        assert.ok((await text(page, '[data-answer=peak] .keys')).includes(`${owner.replaceAll('_', ' ')} ${shownBytes(bytes)}`), owner);
      }
      assert.match(await text(page, '[data-answer=fit]'), new RegExp(`Yes, ${shownBytes(GiB - space.reserved.peak)} to spare`));
      assert.ok((await text(page, '[data-answer=end] .value')) === shownBytes(space.cumulative_current));
      assert.equal(await text(page, '[data-answer=exact] .value'), 'Yes');
    });
  });

  it('say how much more is live after each step', async () => {
    const recorder = new Recorder();
    for (let step = 0; step < 6; step += 1) {
      recorder.allocate(1000 + 10_000 * step, step === 0 ? 5000 : 100, 'other');
      recorder.segment('STEP');
    }
    await on('leak', runOf(recorder, { stepEnd: 'STEP' }), {}, async (page) => {
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes: +100 B per step');
    });
    // Profiles of earlier versions have no rows of names.
    const old = runOf(recorder, { bare: true });
    delete old.run.profile.segments_by_name;
    for (const made of [runOf(recorder, { bare: true }), old]) {
      await on('leak-profile', made, {}, async (page) => {
        assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes: +100 B per step');
        const [row] = await rowsOf(page, 'Segments, folded by name');
        assert.deepEqual([row.cells[1], row.titles[9], ...row.cells.slice(10)], ['6', '5,500 B', '+100 B', '1.00']);
      });
    }
    const uneven = new Recorder();
    for (const [step, size] of [10, 900, 20, 700, 30].entries()) {
      uneven.allocate(1000 + 10_000 * step, size, 'other');
      uneven.segment('STEP');
      uneven.free(1000 + 10_000 * step);
    }
    // Sxx = 10, Sxy = -160, Syy = 750,280: slope -16 B, R^2 0.0034.
    await on('uneven', runOf(uneven), {}, async (page) => {
      assert.equal(await text(page, '[data-answer=growth] .value'), 'No clear trend');
      assert.match(await text(page, '[data-answer=growth]'), /\u221216 B a step, r\u00b2 0\.00/);
      const [row] = await rowsOf(page, 'Segments, folded by name');
      assert.deepEqual(row.cells.slice(10), ['\u221216 B', '0.00']);
    });
    const others = runOf(uneven, { bare: true });
    others.run.profile.segments_by_name[0].stands_for_others = true;
    await on('other-names', others, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Too few steps to tell');
    });
    await on('training', trained(), {}, async (page) => {
      assert.match(await text(page, '[data-answer=growth]'), /No: 0 B a step\s+22\.9 MiB live in cuda:0 after each OPTIMIZER_STEP \(4\)/);
    });
  });

  it('name who grows, as the profile does', async () => {
    const recorder = new Recorder();
    for (let step = 0; step < 6; step += 1) {
      recorder.allocate(1000 + 10_000 * step, 100, 'other');
      recorder.segment('STEP');
    }
    const lines = (page) => page.locator('[data-answer=growth] p:not(.value, .more)').allInnerTexts();
    const live = 'live after STEP: first 100 B, last 600 B';
    const grower = (owner, perStep, since, within) => ({ owner, per_step: perStep, since_step: since, within_steps: within, steps: 640 });
    const made = runOf(recorder, { bare: true });
    const [space] = made.run.profile.spaces;
    space.growing = [grower('log_metrics', 256, 0, 16)];
    await on('one-grows', made, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes: +256 B per step');
      assert.equal(await page.locator('[data-answer=growth].bad').count(), 1);
      assert.deepEqual(await lines(page), ['+256 B per step by log_metrics, since step 1', live]);
      // The table has another number, of a line through all that is live, and calls it otherwise.
      await goTo(page, 'segments');
      const titles = await page.locator('[aria-label="Segments, folded by name"] thead th').allInnerTexts();
      assert.equal(titles[10].split('\n')[0], 'Slope per step');
      assert.equal((await rowsOf(page, 'Segments, folded by name'))[0].cells[10], '+100 B');
    });
    space.growing = [grower('a/b', 2048, 512, 16), grower(null, 1024, 3, 1), grower('c', 512, 0, 1), grower('d', 512, 0, 1)];
    await on('four-grow', made, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes: +4.00 KiB per step');
      assert.deepEqual(await lines(page), [
        '+2.00 KiB per step by a/b, since about step 513',
        '+1.00 KiB per step outside every operation, since step 4',
        '2 other operations grow',
        live,
      ]);
    });
    space.growing = [grower('(reserved, but in no block)', 512, -1, 4), grower('c', 0.125, 0, 1)];
    await on('rarely-grows', made, {}, async (page) => {
      assert.deepEqual(await lines(page), ['+512 B per step reserved, but in no block', '+0.125 B per step by c, since step 1', live]);
    });
  });

  it('say which spaces grow, whichever is shown', async () => {
    const recorder = new Recorder({ spaces: ['cuda:0', 'cpu', 'pinned', 'shrinks'] });
    recorder.allocate(1, 100 * 2 ** 20, 'parameter', { space: 0 });
    for (let step = 0; step < 20; step += 1) recorder.allocate(10_000_000 + step * 10_000, 1000, 'other', { space: 3 });
    for (let step = 0; step < 20; step += 1) {
      recorder.allocate(1000 + step * 10_000, 2 ** 10, 'other', { space: 1 });
      recorder.allocate(1_000_000 + step * 10_000, 512, 'other', { space: 2 });
      recorder.free(10_000_000 + step * 10_000, 3);
      recorder.segment('STEP');
    }
    await on('leak-elsewhere', runOf(recorder, { stepEnd: 'STEP' }), {}, async (page) => {
      assert.equal(await text(page, '[data-answer=peak] h2'), 'Peak of cuda:0');
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes, in cpu: +1.00 KiB per step');
      assert.equal(await page.locator('[data-answer=growth].bad').count(), 1);
      const lines = await page.locator('[data-answer=growth] p:not(.value, .more)').allInnerTexts();
      assert.deepEqual(lines, [
        '100 MiB live in cuda:0 after each STEP (20)',
        '+1.00 KiB per step in cpu: first 1.00 KiB, last 20.0 KiB',
        '+512 B per step in pinned: first 512 B, last 10.0 KiB',
      ]);
      await follow(page, '[data-answer=spaces] tr:nth-child(2) a');
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes, in cpu: +1.00 KiB per step');
      assert.match(await text(page, '[data-answer=growth]'), /live in cpu after STEP: first 1\.00 KiB, last 20\.0 KiB\n+\+512 B per step in pinned/);
    });
    const named = runOf(recorder, { stepEnd: 'STEP' });
    named.run.profile.spaces[2].growing = [{ owner: 'staging', per_step: 2048, since_step: 0, within_steps: 1, steps: 20 }];
    await on('leak-elsewhere-named', named, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=growth] .value'), 'Yes, in pinned: +2.00 KiB per step');
      assert.match(await text(page, '[data-answer=growth]'), /\+2\.00 KiB per step in pinned by staging, since step 1: first 512 B, last 10\.0 KiB/);
    });
  });

  it('say how much heap was not recorded', async () => {
    const reading = (moment, resident, recorded, heap) => ({ ...processReading, moment, resident_bytes: resident, recorded_bytes: recorded, unrecorded_heap_bytes: heap });
    const seen = (heap) => runOf(training(), { facts: { process_memory: [reading('most_resident', 2 * GiB, GiB, heap), reading('most_unrecorded', 2 * GiB, GiB, heap)] } });
    await on('unrecorded', seen(GiB / 2), {}, async (page) => {
      assert.equal(await text(page, '[data-answer=exact] .value'), 'Only for what was recorded');
      assert.match(await text(page, '[data-answer=exact]'), /process 2\.00 GiB resident: 1\.00 GiB recorded, 512 MiB heap not recorded/);
    });
    await on('recorded', seen(GiB / 50), {}, async (page) => {
      assert.equal(await text(page, '[data-answer=exact] .value'), 'Yes');
      assert.match(await page.locator('#facts').innerText(), /Process 2\.00 GiB resident: 1\.00 GiB recorded/);
    });
  });

  it('say how much had no operation, at any width and in both schemes', async () => {
    const recorder = new Recorder();
    recorder.begin('forward');
    recorder.allocate(1, 2 ** 20, 'other', { space: 0 });
    recorder.end();
    recorder.allocate(2, 3 * 2 ** 20, 'other', { space: 0 });
    const made = runOf(recorder, {});
    for (const scheme of ['light', 'dark']) {
      await on('workers', made, { width: 360, scheme }, async (page) => {
        const line = page.locator('[data-answer=owners] p', { hasText: 'had no operation' });
        assert.match(await line.innerText(), /^75\.0 % of the bytes allocated had no operation; .*MEMPROF_INFER_OPERATIONS, memprof run --infer-operations/);
        assert.ok(await line.evaluate((p) => p.scrollWidth <= p.clientWidth && document.documentElement.scrollWidth <= innerWidth), `it overflows, ${scheme}`);
        await shot(page, `workers-${scheme}`);
      });
    }
  });

  it('say that what an allocator reserved may not fit, though what was live did', async () => {
    const MiB = 2 ** 20;
    for (const [reserved, value, line] of [
      [GiB, `Yes, ${shownBytes(0)} to spare`, `${shownBytes(GiB)} reserved of ${shownBytes(GiB)}`],
      [GiB + 80 * MiB, `It may not: ${shownBytes(80 * MiB)} too much`, `${shownBytes(GiB + 80 * MiB)} reserved of ${shownBytes(GiB)}`],
    ]) {
      const made = runOf(training(), { capacities: [0, GiB], device: 'gpu-1gb', reserved: [0, reserved] });
      await on('reserved', made, {}, async (page) => {
        assert.equal(await text(page, '[data-answer=fit] .value'), value);
        assert.ok((await text(page, '[data-answer=fit]')).includes(line), line);
        const left = `live bytes alone would leave ${shownBytes(GiB - main(made.run).cumulative_peak)}`;
        assert.equal((await text(page, '[data-answer=fit]')).includes(left), reserved > GiB);
      });
    }
  });

  it('say why numbers are not exact, and what would not fit', async () => {
    const made = runOf(training(), { capacities: [0, 10_000_000], exact: false, anomalies: { dropped_events: 7 }, notes: ['The clock was set back.'] });
    main(made.run).first_shortfall = { ...main(made.run).first_shortfall, requested: 1_500_000, shortfall: 400_000, operation: 'forward/layer0', time_ns: 9000, remedy: [{ owner: 'model', bytes: 12_000_000, blocks: 6 }] };
    await on('inexact', made, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=exact] .value'), 'No: events were lost');
      assert.match(await text(page, '[data-answer=exact]'), /7 events dropped.*The clock was set back\./s);
      // By the peak, though it was exceeded by little at first.
      assert.equal(await text(page, '[data-answer=fit] .value'), `No: ${shownBytes(main(made.run).cumulative_peak - 10_000_000)} short`);
      assert.match(await text(page, '[data-answer=fit]'), /first at 9\.00 .s: forward\/layer0 requested 1\.43 MiB, 391 KiB too much/);
      assert.match(await text(page, '[data-answer=fit]'), /freeing model \(11\.4 MiB\) would have made room for it/);
    });
  });

  it('say why numbers are not exact as the summary does, whatever the reason', async () => {
    const anomalies = (found) => runOf(training(), { exact: false, anomalies: found });
    const space = (change) => {
      const made = runOf(training(), { exact: false });
      change(main(made.run));
      return made;
    };
    const reasons = [
      ['missing', anomalies({ missing_events: 3 }), 'No: events were lost', /3 events missing from the trace/],
      ['rejected', anomalies({ rejected_events: 2 }), 'No: events were rejected', /2 events rejected/],
      ['rows', anomalies({ missing_fact_rows: 4 }), 'No: tables of facts are incomplete', /4 rows of the tables of facts missing/],
      ['untracked', space((of) => Object.assign(of.anomalies, { untracked_allocations: { count: 5, bytes: 5120 } })), 'No: the profiler ran out of memory', /5 allocations not tracked.*5\.00 KiB/],
      ['shared', space((of) => Object.assign(of, { stands_for_others: true })), 'No: memory spaces share one', /beyond the 254th/],
      ['libraries', runOf(training(), { exact: false, facts: { unrecorded_modules: [{ path: '/opt/plugin.so' }] } }), 'No: libraries were not recorded', /1 library not recorded/],
      ['source', runOf(training(), { exact: false, facts: { not_captured: [{ source: 'CUDA', reason: 'no device' }] } }), 'No: CUDA was not captured', /CUDA not captured: no device/],
      ['unknown', runOf(training(), { exact: false }), 'No: the profile does not say why', /./],
    ];
    for (const [name, made, value, line] of reasons) {
      await on(`inexact-${name}`, made, {}, async (page) => {
        assert.equal(await text(page, '[data-answer=exact] .value'), value);
        assert.match(await text(page, '[data-answer=exact]'), line);
        if (name === 'unknown') assert.match(await page.locator('#facts').innerText(), /not exact: the profile does not say why\./);
      });
    }
  });

  it('say what spaces of one memory held together, where more than one held anything', async () => {
    const made = runOf(training(), {});
    const part = (owner, bytes) => ({ owner, bytes, blocks: bytes > 0 ? 1 : 0 });
    const memory = {
      name: 'ho<b>st',
      cumulative_peak: 9 * 2 ** 20 + 1,
      cumulative_current: 0,
      peak_segment: 0,
      peak_time_ns: 1500,
      peak_space: 'cpu',
      peak_operation: 'forward',
      spaces: [part('cuda:0', 9 * 2 ** 20), part('cpu', 1)],
      live_at_peak: main(made.run).live_at_peak,
    };
    made.run.profile.memories = [memory, { ...memory, name: 'alone', spaces: [part('cpu', 1), part('unused', 0)] }];
    await on('together', made, {}, async (page) => {
      const lines = page.locator('[data-answer=spaces] .together');
      assert.equal(await lines.count(), 1);
      assert.match(await text(page, '[data-answer=spaces] .together'), /^Together in ho<b>st: 9\.00 MiB at 1\.50 .s \(cuda:0 9\.00 MiB, cpu 1 B\)$/);
      assert.match(await lines.getAttribute('title'), /, by forward: 9,437,185 B$/);
    });
  });

  it('link to what shows them', async () => {
    await on('training', trained(), {}, async (page) => {
      await follow(page, '[data-answer=growth] a');
      assert.equal((await state(page)).view, 'segments');
      await follow(page, '[data-answer=end] a');
      assert.match(await text(page, '#live .lead'), /^17\.2 MiB|^1[0-9.]+ MiB|^2[0-9.]+ MiB/);
      await follow(page, '[data-answer=peak] .value a');
      assert.match(await text(page, '#live .lead'), /This is the peak\./);
      await follow(page, '[data-answer=owners] a');
      const { find } = await state(page);
      assert.ok(find.length > 0);
      assert.equal(await page.locator('#live input[type=search]').inputValue(), find);
    });
  });
});

describe('the answer about the peak', () => {
  it('has its phase, however late that is and however few segments the page has', async () => {
    const recorder = new Recorder();
    for (let number = 0; number < 100; number += 1) {
      recorder.allocate(1, number === 70 ? 900 : 100);
      recorder.free(1);
      recorder.segment(number === 70 ? 'LATE' : 'OTHER');
    }
    const made = runOf(recorder, { bare: true });
    const { profile } = made.run;
    made.run.kept_segments = [0, 1, 70, 98, 99];
    for (const of of [profile, ...profile.spaces]) of.segments = made.run.kept_segments.map((number) => of.segments[number]);
    profile.spaces[0].peak_segment = 2;
    await on('late', made, {}, async (page) => assert.match(await text(page, '[data-answer=peak]'), /in LATE/));
  });

  it('has bars for owners in no colour that stands for a category', async () => {
    for (const scheme of ['light', 'dark']) {
      await on('training', trained(), { scheme }, async (page) => {
        const colours = (selector) => page.locator(selector).evaluateAll((all) => [...new Set(all.map((each) => getComputedStyle(each).backgroundColor))]);
        const categories = await colours('[data-answer=peak] .swatch');
        assert.equal(categories.length, main(trained().run).live_at_peak.by_category.length);
        const bars = await colours('[data-answer=owners] .bar-fill');
        assert.equal(bars.length, 1);
        assert.ok(!categories.includes(bars[0]), bars[0]);
        // Nor do the tables below mark operations with them, unless the stack has the colours of operations.
        assert.equal(await page.locator('#operations .swatch, #live td:first-child .swatch').count(), 0);
        await press(page, 'c');
        assert.ok((await page.locator('#live td:first-child .swatch').count()) > 0);
      });
    }
  });
});

describe('what was live', () => {
  it('is the composition of the selected moment, to the byte, at every moment', async () => {
    const recorder = training({ steps: 2, layers: 3 });
    const made = runOf(recorder, { stepEnd: 'OPTIMIZER_STEP' });
    await on('composition', made, { hash: '#live?space=cuda%3A0&by=category&at=e0' }, async (page) => {
      await page.locator('#live [data-value=operations]').click();
      // Brute force: what was live after each event.
      const live = new Map();
      for (const [index, event] of recorder.events.entries()) {
        if (event.space !== 1) continue;
        if (event.kind === 'allocate') live.set(event.address, event);
        else if (event.kind === 'free') live.delete(event.address);
        await goTo(page, `#live?space=cuda%3A0&by=category&at=e${index}`);
        const expected = new Map();
        for (const block of live.values()) {
          const key = `${block.operation < 0 ? '(outside every operation)' : recorder.operations[block.operation].path}|${block.category.replaceAll('_', ' ')}`;
          expected.set(key, (expected.get(key) ?? 0) + block.bytes);
        }
        const shown = new Map((await rowsOf(page, 'What was live at the selected moment, by operation and category')).filter((r) => r.cells.length > 2).map((r) => [`${r.cells[0]}|${r.cells[1]}`, r.titles[2]]));
        assert.deepEqual(shown, new Map([...expected].sort((a, b) => b[1] - a[1]).map(([k, v]) => [k, exactBytes(v)])), `event ${index}`);
        const total = [...live.values()].reduce((sum, b) => sum + b.bytes, 0);
        assert.ok((await text(page, '#live .lead')).includes(`(${exactBytes(total)})`));
      }
    });
  });

  it('has every block, with its address to the last digit', async () => {
    const recorder = new Recorder();
    const tagged = 0xb400_7fff_0123_4567n;
    recorder.begin('tags');
    recorder.allocate(tagged, 4096, 'activation', { name: 'tagged', shape: '[4, 256]', dtype: 'float32' });
    recorder.end();
    recorder.segment('ONLY');
    for (const bare of [false, true]) {
      await on(bare ? 'address-profile' : 'address', runOf(recorder, { bare }), { hash: '#live?at=peak' }, async (page) => {
        await page.locator('#live [data-value=blocks]').click();
        const rows = await rowsOf(page, 'Blocks live at the selected moment');
        assert.equal(rows.length, 1);
        assert.equal(rows[0].cells.at(-1), '0xb4007fff01234567');
        assert.deepEqual(rows[0].cells.slice(0, 4), ['4.00 KiB', 'tagged', 'tags', 'activation']);
      });
    }
  });

  it('at the end names the two largest owners, whether they are operations or not', async () => {
    const recorder = new Recorder();
    for (const [index, [name, size]] of [['large', 500], ['small', 20], ['least', 10]].entries()) {
      recorder.begin(name);
      recorder.allocate(10_000 * (index + 1), size, 'gradient');
      recorder.end();
    }
    recorder.allocate(1000, 300, 'parameter');
    recorder.segment('STEP');
    await on('end-owners', runOf(recorder), {}, async (page) => {
      assert.match(await text(page, '[data-answer=end]'), /830 B\s+gradient 530 B, parameter 300 B\s+500 B by large\s+300 B outside every operation\s+30 B by 2 other owners/);
    });
  });

  it('of a profile is known at its end, by category and operation', async () => {
    const recorder = new Recorder();
    recorder.allocate(1000, 300, 'parameter');
    recorder.begin('work');
    recorder.allocate(2000, 200, 'gradient');
    recorder.allocate(3000, 5000, 'activation');
    recorder.end();
    recorder.free(3000);
    recorder.segment('STEP');
    for (const bare of [true, false]) {
      await on(bare ? 'end-profile' : 'end', runOf(recorder, { bare }), {}, async (page) => {
        assert.match(await text(page, '[data-answer=end]'), /500 B\s+parameter 300 B, gradient 200 B\s+300 B outside every operation\s+200 B by work/);
        await follow(page, '[data-answer=end] a');
        assert.match(await text(page, '#live .lead'), /^500 B \(500 B\) in 2 blocks/);
        const rows = await rowsOf(page, 'What was live at the selected moment, by operation and category');
        assert.deepEqual(rows.map((r) => [r.cells[0], r.titles[2]]), [['(outside every operation)', '300 B'], ['work', '200 B']]);
        assert.match(await text(page, '.legend'), /parameter\s+300 B\s+60\.0 %/);
      });
    }
  });

  it('tells rows apart whose names begin and end alike', async () => {
    const recorder = new Recorder();
    const frames = ['__clone', 'thread_main', 'torch::autograd::Engine::evaluate_function'];
    const inner = ['at::detail::empty_cuda', 'c10::cuda::CUDACachingAllocator::Native::NativeCachingAllocator::malloc (CUDACachingAllocator.cpp)'];
    for (const [index, name] of ['linear', 'softmax', 'gelu'].entries()) {
      for (const frame of [...frames, name, ...inner]) recorder.begin(frame);
      recorder.allocate(1000 * (index + 1), 300 + index, 'other');
      for (let depth = 0; depth < 6; depth += 1) recorder.end();
    }
    recorder.segment('ALL');
    for (const width of [1280, 400]) {
      await on('stacks', runOf(recorder), { width }, async (page) => {
        const names = await page.locator('[data-answer=owners] td:first-child').allInnerTexts();
        const rows = (await rowsOf(page, 'What was live at the selected moment, by operation and category')).map((r) => r.cells[0]);
        const legend = await page.locator('.legend .name').allInnerTexts();
        for (const shown of [names, rows, legend]) {
          assert.equal(new Set(shown).size, 3, shown.join('\n'));
          for (const name of ['linear', 'softmax', 'gelu']) assert.ok(shown.some((text) => text.includes(name)), `${name} in ${shown.join('\n')}`);
        }
        // Without categories the colours are those of operations, and no bar shows that all is "other".
        assert.equal(await page.locator('[data-value=operation]').first().getAttribute('aria-pressed'), 'true');
        assert.equal(await page.locator('[data-answer=peak] .composition').count(), 0);
      });
    }
  });

  it('of a profile is known at the peaks of segments', async () => {
    const made = runOf(training(), { bare: true });
    const space = main(made.run);
    await on('profile', made, { hash: '#live?at=peak' }, async (page) => {
      assert.ok((await text(page, '#live .lead')).includes(exactBytes(space.cumulative_peak)));
      const rows = await rowsOf(page, 'What was live at the selected moment, by operation and category');
      assert.equal(rows.reduce((sum, r) => sum + Number(r.titles[2].replace(/[^0-9]/g, '')), 0), space.cumulative_peak);
      await shot(page, 'profile');
    });
  });

  it('is filtered by a click in the flame, and comes back', async () => {
    for (const bare of [false, true]) {
      await on(bare ? 'flame-profile' : 'flame', runOf(training(), { bare }), { hash: '#live?at=peak' }, async (page) => {
        const label = 'What was live at the selected moment, by operation and category';
        const names = async () => (await rowsOf(page, label)).map((row) => row.cells[0]);
        await page.locator('#live [data-value=operations]').click();
        const all = await names();
        assert.ok(all.includes('model') && all.includes('forward/layer0'));
        assert.ok(!(await page.locator('.crumbs').isVisible()));
        const canvas = page.locator('.icicle canvas');
        await canvas.focus();
        // Its second level, from the left: the operation with the most.
        for (const key of ['ArrowDown', 'Enter']) await press(page, key);
        const first = (await page.locator('.crumbs .current').innerText()).trim();
        const shown = await names();
        assert.ok(shown.length > 0 && shown.length < all.length);
        assert.deepEqual(shown, all.filter((name) => name === first || name.startsWith(`${first}/`)));
        await page.locator('#live [data-value=blocks]').click();
        const blocks = (await rowsOf(page, 'Blocks live at the selected moment')).filter((row) => row.cells.length > 2);
        assert.ok(blocks.every((row) => row.cells[2] === first || row.cells[2].startsWith(`${first}/`)));
        await page.locator('#live [data-value=operations]').click();
        await page.locator('.crumbs button', { hasText: 'Show everything' }).click();
        assert.deepEqual(await names(), all);
        assert.ok(!(await page.locator('.crumbs').isVisible()));
        // The same with the pointer, down to a leaf and back by one level.
        const box = await canvas.boundingBox();
        await canvas.click({ position: { x: 20, y: 36 } });
        assert.deepEqual(await names(), shown);
        await canvas.click({ position: { x: box.width / 2, y: 60 } });
        assert.ok((await names()).length <= shown.length);
        await page.locator('.crumbs button', { hasText: first }).first().click();
        assert.deepEqual(await names(), shown);
      });
    }
  });
});

describe('the timeline', () => {
  it('loses no maximum when it is downsampled, at any zoom', async () => {
    const recorder = new Recorder({ tick: 10 });
    let seed = 7;
    const random = () => (seed = (seed * 48271) % 2147483647) / 2147483647;
    const live = [];
    for (let i = 0; i < 6000; i += 1) {
      if (live.length > 0 && random() < 0.5) recorder.free(live.splice(Math.floor(random() * live.length), 1)[0]);
      else {
        live.push(1 + i * 100_000);
        recorder.allocate(live.at(-1), 1 + Math.floor(random() * 90_000), 'other');
      }
    }
    recorder.segment('ALL');
    const made = runOf(recorder, { buckets: 256 });
    let total = 0;
    const sizes = new Map();
    const totals = recorder.events.map((e) => {
      if (e.kind === 'allocate') sizes.set(e.address, e.bytes);
      if (e.kind === 'allocate') total += e.bytes;
      else if (e.kind === 'free') total -= sizes.get(e.address);
      return total;
    });
    const peak = totals.indexOf(Math.max(...totals));
    await on('downsampled', made, { hash: '#timeline?unit=event&at=e0' }, async (page) => {
      assert.equal(made.run.profile.spaces[0].cumulative_peak, totals[peak]);
      await page.locator('#timeline canvas').first().focus();
      await press(page, 'p');
      assert.equal((await state(page)).at, `e${peak}`);
      // Whatever the range, some column of pixels shows the largest moment in it.
      for (const [from, to] of [[0, 6001], [1000, 4000], [peak - 100, peak + 100], [peak - 20, peak + 15]]) {
        await goTo(page, `#timeline?unit=event&from=${Math.max(0, from)}&to=${to}&at=e0`);
        const greatest = await page.evaluate((wanted) => {
          const canvas = document.querySelector('#timeline canvas');
          const box = canvas.getBoundingClientRect();
          let most = 0;
          for (let x = 72; x < box.width - 13 && most < wanted; x += 1) {
            canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + x, clientY: box.y + 100, bubbles: true }));
            const shown = document.querySelector('#tip dd').textContent;
            most = Math.max(most, Number(/\(([\d,]+) B\)/.exec(shown)[1].replaceAll(',', '')));
          }
          return most;
        }, totals[peak]);
        if (peak >= from && peak < to) assert.equal(greatest, totals[peak], `${from} to ${to}`);
        else assert.ok(greatest <= totals[peak], `${from} to ${to}`);
      }
    });
  });

  it('shows below it the composition under the pointer, which sums to what is live, and in its tooltip the part', async () => {
    await on('training', trained(), { hash: '#timeline?unit=event' }, async (page) => {
      const canvas = page.locator('#timeline canvas').first();
      const box = await canvas.boundingBox();
      for (const part of [0.1, 0.33, 0.5, 0.77]) {
        const tip = await tipAt(page, box.x + 72 + part * (box.width - 84), box.y + box.height - 24);
        const exact = Number(/\(([\d,]+) B\)/.exec(tip)[1].replaceAll(',', ''));
        const legend = await page.locator('.legend > div').evaluateAll((all) => all.map((each) => [each.querySelector('.name').textContent, Number(each.title.split('\n')[1].replace(/[^0-9]/g, ''))]));
        assert.ok(exact > 0);
        assert.equal(legend.reduce((sum, [, bytes]) => sum + bytes, 0), exact);
        // At the bottom lies the first part.
        assert.ok(tip.includes(`parameter\n${shownBytes(legend[0][1])}, `) || tip.includes(`parameter\t${shownBytes(legend[0][1])}, `), tip);
      }
    });
  });

  it('is not covered by its tooltip', async () => {
    for (const [width, height] of [[1400, 900], [900, 900], [400, 800]]) {
      await on('training', trained(), { width, height, hash: '#timeline?at=peak' }, async (page) => {
        const box = await page.locator('#timeline canvas').first().boundingBox();
        for (const [across, down] of [[0.3, 0.2], [0.5, 0.5], [0.9, 0.7]]) {
          await tipAt(page, box.x + across * box.width, box.y + down * box.height);
          const covered = await page.evaluate(() => {
            const [a, b] = ['#tip', '#timeline canvas'].map((selector) => document.querySelector(selector).getBoundingClientRect());
            const overlap = (from, to) => Math.max(0, to - from);
            return (overlap(Math.max(a.left, b.left), Math.min(a.right, b.right)) * overlap(Math.max(a.top, b.top), Math.min(a.bottom, b.bottom))) / (b.width * b.height);
          });
          assert.ok(covered < 1 / 7, `${(100 * covered).toFixed(0)} % at ${width}`);
        }
      });
    }
  });

  it('zooms by wheel, drag and keys, pans, and comes back', async () => {
    await on('training', trained(), { hash: '#timeline?unit=event' }, async (page) => {
      const canvas = page.locator('#timeline canvas').first();
      const range = async () => {
        const { from = '0', to = String(runEvents) } = await state(page);
        return [Number(from), Number(to)];
      };
      const runEvents = await page.evaluate(() => Number(/([\d,]+) events/.exec(document.querySelector('.about').textContent)[1].replaceAll(',', '')));
      const box = await canvas.boundingBox();
      await page.mouse.move(box.x + box.width / 2, box.y + 100);
      await page.mouse.wheel(0, -200);
      let [from, to] = [0, 0];
      await eventually(async () => {
        [from, to] = await range();
        assert.ok(from > 0 && to < runEvents, 'the wheel zooms in');
      });
      await page.mouse.wheel(120, 0);
      await eventually(async () => {
        const [panned, pannedTo] = await range();
        assert.ok(panned > from && Math.abs(pannedTo - panned - (to - from)) <= 2, 'a sideways wheel pans');
      });
      await canvas.dblclick();
      assert.deepEqual(await range(), [0, runEvents], 'a double click shows the whole run');
      const drag = async (begin, end) => {
        await page.mouse.move(box.x + begin, box.y + 100);
        await page.mouse.down();
        await page.mouse.move(box.x + end, box.y + 100, { steps: 4 });
        await page.mouse.up();
      };
      await drag(300, 500);
      assert.deepEqual(await range(), [0, runEvents], 'the whole run cannot be panned');
      await eventually(async () => assert.match(await text(page, '.status'), /dragging with Shift/));
      await page.keyboard.down('Shift');
      await drag(300, 500);
      await page.keyboard.up('Shift');
      const scale = runEvents / (box.width - 84);
      await eventually(async () => {
        [from, to] = await range();
        assert.ok(Math.abs(from - (300 - 72) * scale) < 2 && Math.abs(to - (500 - 72) * scale) < 2, 'a drag with Shift zooms to what was dragged over');
      });
      await drag(500, 600);
      await eventually(async () => {
        const [moved, movedTo] = await range();
        const by = (100 / (box.width - 84)) * (to - from);
        assert.ok(Math.abs(from - by - moved) < 2 && Math.abs(movedTo - moved - (to - from)) < 2, 'a drag pans: what was under the pointer stays there');
      });
      await press(page, '0');
      await press(page, '+');
      const zoomed = await range();
      assert.ok(zoomed[1] - zoomed[0] < runEvents, 'plus zooms in');
      await press(page, 'a');
      await press(page, 'd');
      await press(page, '-');
      await press(page, '0');
      assert.deepEqual(await range(), [0, runEvents]);
    });
  });

  it('goes to the peak, to the next larger one, and from moment to moment by keys', async () => {
    const recorder = new Recorder();
    const sizes = [10, 50, 30, 70, 20, 90, 40];
    sizes.forEach((size, i) => {
      recorder.allocate(1 + i * 1000, size, 'other');
      recorder.free(1 + i * 1000);
    });
    recorder.segment('ALL');
    await on('peaks', runOf(recorder), { hash: '#timeline?unit=event&at=e0' }, async (page) => {
      const at = async () => (await state(page)).at;
      assert.equal(await at(), 'e0');
      const visited = [];
      for (let i = 0; i < 4; i += 1) {
        await press(page, 'n');
        visited.push(await at());
      }
      assert.deepEqual(visited, ['e2', 'e6', 'e10', 'e10'], '50, 70, 90, and none larger');
      await press(page, 'ArrowLeft');
      await press(page, 'ArrowLeft');
      assert.equal(await at(), 'e8');
      await press(page, 'b');
      assert.equal(await at(), 'e6');
      await press(page, 'p');
      assert.equal(await at(), 'e10');
    });
  });

  it('shows a step in full where the page has it, and steps like it marked as such', async () => {
    const recorder = new Recorder();
    for (let step = 0; step < 20; step += 1) {
      if (step === 0) recorder.allocate(500_000, 1000, 'parameter');
      for (let i = 0; i < 30; i += 1) recorder.allocate(1000 + i * 1000, 10 + i, 'activation');
      for (let i = 29; i >= 0; i -= 1) recorder.free(1000 + i * 1000);
      recorder.segment('STEP');
    }
    const made = runOf(recorder, { stepEnd: 'STEP', buckets: 24, frameSteps: [2] });
    const steps = 61;
    // Of step 3, every event; of step 4, what is known of step 3.
    await on('frames', made, { hash: `#timeline?unit=event&from=${1 + 2 * steps}&to=${1 + 4 * steps}&at=e${1 + 2 * steps + 4}` }, async (page) => {
      assert.ok((await text(page, '#live .lead')).startsWith(`1.04 KiB (${exactBytes(1000 + 10 + 11 + 12 + 13 + 14)}) in 6 blocks`));
      const canvas = page.locator('#timeline canvas').first();
      const box = await canvas.boundingBox();
      const at = (event) => tipAt(page, box.x + 72 + ((event + 0.5) / (2 * steps)) * (box.width - 84), box.y + 100);
      let expected = 1000;
      for (let i = 0; i < 30; i += 1) {
        expected += 10 + i;
        const inside = await at(i);
        assert.ok(inside.includes(`(${exactBytes(expected)})`), `event ${i} of the step: ${inside}`);
        assert.ok(!inside.includes('As in step'));
        const like = await at(steps + i);
        assert.ok(like.startsWith('Step 4') && like.includes(`(${exactBytes(expected)})`) && like.includes('As in step 3'), `event ${i} of the next: ${like}`);
      }
      await shot(page, 'frames', false);
    });
  });

  it('shows one of many steps first, and all of them as their largest moments', async () => {
    const count = 200;
    const recorder = new Recorder();
    const sizes = [10, 300, 20, 700, 5, 40, 900, 60];
    for (let step = 0; step < count; step += 1) {
      if (step === 0) recorder.allocate(500_000, 1000, 'parameter');
      // The peak is in a step in the middle.
      sizes.forEach((size, i) => recorder.allocate(1000 + i * 1000, size + (step === 77 ? 1 : 0), 'activation'));
      for (let i = sizes.length - 1; i >= 0; i -= 1) recorder.free(1000 + i * 1000);
      recorder.segment('FORWARD_PASS');
      recorder.segment('BACKWARD_PASS');
    }
    const each = 1000 + sizes.reduce((sum, size) => sum + size);
    const length = 2 * sizes.length + 2;
    for (const unit of ['event', 'time']) {
      await on('many-steps', runOf(recorder, { stepEnd: 'BACKWARD_PASS' }), {}, async (page) => {
        await page.locator(`[data-value=${unit}]`).click();
        assert.match(await text(page, '.range-note'), /^Step 78 of 200 steps, which holds the peak\./);
        await press(page, 'ArrowLeft');
        const { from, to } = await state(page);
        const scale = unit === 'event' ? 1 : recorder.tick;
        assert.ok(Math.abs(from - (1 + 77 * length) * scale) < 4 * scale && Math.abs(to - (1 + 78 * length) * scale) < 4 * scale, `${from} to ${to}`);
        await page.locator('.range-note button', { hasText: 'whole run' }).click();
        await settle(page);
        assert.match(await text(page, '.range-note'), /^The whole run, each of 200 steps as its largest moment\./);
        const shown = await page.evaluate(() => {
          const canvas = document.querySelector('#timeline canvas');
          const box = canvas.getBoundingClientRect();
          const result = [];
          for (let x = 76; x < box.width - 20; x += 1) {
            canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + x, clientY: box.y + 100, bubbles: true }));
            result.push([Number(/\(([\d,]+) B\)/.exec(document.querySelector('#tip dd').textContent)[1].replaceAll(',', '')), document.querySelector('.legend .name').parentElement.title]);
          }
          return result;
        });
        assert.deepEqual([...new Set(shown.map(([total]) => total))].sort(), [each, each + sizes.length]);
        const canvas = await page.locator('.band canvas').boundingBox();
        assert.match(await tipAt(page, canvas.x + 90, canvas.y + 10), /^Steps 1 to (10|20)\n/);
        assert.match(await tipAt(page, canvas.x + 90, canvas.y + 30), /^400 segments/);
        await shot(page, `many-steps-${unit}`, false);
      });
    }
    // A profile knows how many steps there were, and how long.
    await on('many-steps-profile', runOf(recorder, { bare: true }), {}, async (page) => {
      const totals = await page.evaluate(() => {
        const canvas = document.querySelector('#timeline canvas');
        const box = canvas.getBoundingClientRect();
        const result = new Set();
        for (let x = 80; x < box.width - 26; x += 1) {
          canvas.dispatchEvent(new PointerEvent('pointermove', { clientX: box.x + x, clientY: box.y + 100, bubbles: true }));
          result.add(document.querySelector('#tip dd').textContent);
        }
        return [...result];
      });
      assert.deepEqual(totals.length, 2, totals.join());
    });
  });

  it('shows each memory space in a lane of its own', async () => {
    await on('training', trained(), { hash: '#timeline?by=space' }, async (page) => {
      assert.equal(await page.locator('.space-lanes canvas').count(), 2);
      assert.match(await text(page, '.space-lanes'), /cpu\s+peak 4\.00 KiB/);
    });
  });
});

describe('numbers', () => {
  it('of facts are written by what they mean, as the command line does', async () => {
    const facts = {
      tt_memory: [
        { space: 'dram', banks: 12, bank_bytes: 1_073_741_792, peak_bytes: 5_000_000, peak_free_bytes: 6_000_000, peak_largest_free_bytes: 7_000_000, peak_fragmentation: 0.119, peak_before: 'matmul', peak_line: 1234, greatest_fragmentation: 0.5, greatest_before: 'add', greatest_line: 5678, states: 90 },
        { space: 'l1', banks: 13, bank_bytes: 1024, peak_bytes: 2048, peak_free_bytes: 3072, peak_largest_free_bytes: 4096, peak_fragmentation: 0, peak_before: '', peak_line: 3, greatest_fragmentation: 1, greatest_before: '', greatest_line: 4, states: 5 },
      ],
      tt_fragmentation: [{ space: 'dram', time_ns: 17_900_000, line: 11, allocated_bytes: 12_345_678, free_bytes: 23_456_789, largest_free_bytes: 34_567_890, fragmentation: 0 }],
      tt_out_of_memory: [{ space: 'dram', line: 8, requested: 45_678_901, banks: 8, bytes_per_bank: 56_789_012, bank_bytes: 67_890_123, allocated_in_bank: -1, free_in_bank: 78_901_234, largest_free_in_bank: 89_012_345, fragmentation: 0.25 }],
      xla_programs: [{ program: 'jit_step', space: 'hbm', peak: 90_123_456, unpadded_peak: 80_123_456, parameters: 70_123_456, outputs: 60_123_456, temporaries: 50_123_456, all_allocations: 40_123_456, thread_local: 30_123_456, runs: 1500 }],
      torch_segments: [{ device: 1, address: 140_000_000_000_000, total_size: 20_971_520, allocated_size: 10_485_760, active_size: 9_437_184, requested_size: 8_388_608, stream: 0, type: 'large', pool: 'default', is_expandable: 1 }],
      pytorch_operations: [{ name: 'aten::mm', input_shapes: '[2, 2]', count: 4321, cpu_time_ns: 1_500_000, device_time_ns: 2_500_000_000, cpu_memory: -4096, device_memory: 16_384 }],
      source_limits: [{ remark: 'a log', rounding: 10_485, planned: 0 }],
      others: [{ 'mean of several': 12.5, large: 1_234_567.75, some: 0.125, seen_share: 1 }, { 'mean of several': 13, large: 2, some: null, seen_share: 0 }],
    };
    const expected = {
      tt_memory: [
        ['dram', '12', '1024 MiB', '4.77 MiB', '5.72 MiB', '6.68 MiB', '0.119', 'matmul', '1,234', '0.500', 'add', '5,678', '90'],
        ['l1', '13', '1.00 KiB', '2.00 KiB', '3.00 KiB', '4.00 KiB', '0.000', '', '3', '1.000', '', '4', '5'],
      ],
      tt_fragmentation: [['dram', '17.9 ms', '11', '11.8 MiB', '22.4 MiB', '33.0 MiB', '0.000']],
      tt_out_of_memory: [['dram', '8', '43.6 MiB', '8', '54.2 MiB', '64.7 MiB', 'unknown', '75.2 MiB', '84.9 MiB', '0.250']],
      xla_programs: [['jit_step', 'hbm', '85.9 MiB', '76.4 MiB', '66.9 MiB', '57.3 MiB', '47.8 MiB', '38.3 MiB', '28.7 MiB', '1,500']],
      "PyTorch's segments of device memory": [['1', '0x7f544b8c8000', '20.0 MiB', '10.0 MiB', '9.00 MiB', '8.00 MiB', '0', 'large', 'default', 'yes']],
      "PyTorch's operators": [['aten::mm', '[2, 2]', '4,321', '1.50 ms', '2.50 s', '\u22124.00 KiB', '16.0 KiB']],
      source_limits: [['a log', '10.2 KiB', 'no']],
      others: [['12.500', '1,234,568', '0.125', '1.000'], ['13.000', '2.000', 'unknown', '0.000']],
    };
    expected.tt_memory[0][2] = shownBytes(1_073_741_792);
    expected["PyTorch's segments of device memory"][0][1] = `0x${(140_000_000_000_000).toString(16)}`;
    await on('facts', runOf(training(), { facts }), { hash: '#facts', width: 1600 }, async (page) => {
      for (const [label, rows] of Object.entries(expected)) assert.deepEqual((await rowsOf(page, label)).map((row) => row.cells), rows, label);
      assert.equal((await rowsOf(page, 'tt_memory'))[0].titles[6], '0.119');
      assert.equal((await rowsOf(page, 'tt_memory'))[0].titles[3], '5,000,000 B');
    });
  });

  it('are those of their own fields, in their own units', async () => {
    const made = runOf(training(), { capacities: [0, GiB], device: 'gpu-1gb', reserved: [0, 80 * 2 ** 20], waiting: [0, 2 ** 20], stepEnd: 'OPTIMIZER_STEP' });
    const space = main(made.run);
    // Each number of the profile that is shown as it is has a value that no other one has.
    let next = 1_000_003;
    const own = () => (next += 1_000_003);
    const unique = (of, keys) => keys.forEach((key) => (of[key] = own()));
    const bytesOf = ['segment_peak', 'allocations', 'deallocations', 'segment_change', 'cumulative_peak', 'cumulative_current'];
    unique(space, ['allocations', 'deallocations']);
    Object.assign(space, { allocation_count: 1003, deallocation_count: 907 });
    unique(space.reserved, ['current']);
    unique(space.active, ['peak', 'current']);
    space.segments.forEach((segment) => unique(segment, bytesOf));
    for (const [index, segment] of made.run.profile.segments.entries()) segment.end_ns = segment.begin_ns + 7 * (index + 1);
    space.streams = [{ stream: '7', pool: 'graph' }];
    unique(space.streams[0], ['cumulative_peak', 'cumulative_current', 'allocation_count', 'reserved_peak', 'reserved_current']);
    space.out_of_memory = [{ operation: 'forward', segment: 0 }];
    unique(space.out_of_memory[0], ['requested', 'device_free', 'live_bytes', 'reserved_bytes', 'time_ns']);
    space.cores.ranges = [{ range: '(0,0)-(7,7)', peaks: { busiest_core: '(1,2)' } }];
    unique(space.cores.ranges[0].peaks, ['circular_buffers', 'buffers', 'total']);
    space.anomalies.unmatched_frees = { count: own(), bytes: own() };
    const operation = made.run.profile.operations.find((o) => o.path === 'forward');
    operation.invocations = 8;
    const usage = operation.usage.find((u) => u.space === 'cuda:0');
    unique(usage, ['total_delta', 'max_delta', 'allocated', 'self_allocated', 'peak', 'self_peak', 'live']);
    const counted = (value) => value.toLocaleString('en-US');
    const changed = (value) => `+${shownBytes(value)}`;
    await on('own-values', made, { width: 1600 }, async (page) => {
      const numbers = Object.fromEntries(await page.locator('#allocator dl.numbers > div').evaluateAll((all) => all.map((each) => [each.querySelector('dt').textContent, [each.querySelector('dd').textContent, each.title.split('\n')[0]]])));
      const { reserved, active } = space;
      for (const [name, value] of [['Allocated', space.allocations], ['Freed', space.deallocations], ['Peak live', space.cumulative_peak], ['Capacity', GiB], ['Peak reserved', reserved.peak], ['Reserved at end', reserved.current], ['Peak active', active.peak], ['Active at end', active.current]]) {
        assert.deepEqual(numbers[name], [shownBytes(value), exactBytes(value)], name);
      }
      assert.equal(numbers.Allocations[0], counted(space.allocation_count));
      assert.equal(numbers.Deallocations[0], counted(space.deallocation_count));
      assert.equal(numbers['Mean allocation'][0], shownBytes(Math.round(space.allocations / space.allocation_count)));
      assert.equal(numbers['Frees of untracked blocks'][0], `${counted(space.anomalies.unmatched_frees.count)}, ${shownBytes(space.anomalies.unmatched_frees.bytes)}`);
      const [stream] = space.streams;
      assert.deepEqual((await rowsOf(page, 'Streams and pools'))[0].cells, ['7', 'graph', ...[stream.reserved_peak, stream.reserved_current, stream.cumulative_peak, stream.cumulative_current].map(shownBytes), counted(stream.allocation_count)]);
      const [failure] = space.out_of_memory;
      const failed = (await rowsOf(page, 'Allocations that ran out of memory'))[0];
      assert.deepEqual(failed.cells.slice(0, 5), ['forward', ...[failure.requested, failure.device_free, failure.live_bytes, failure.reserved_bytes].map(shownBytes)]);
      assert.equal(failed.titles[5], `${counted(failure.time_ns)} ns`);
      const { peaks } = space.cores.ranges[0];
      assert.deepEqual((await rowsOf(page, 'Peaks per core'))[0].cells, ['(0,0)-(7,7)', ...[peaks.total, peaks.circular_buffers, peaks.buffers].map(shownBytes), '(1,2)']);
      const row = (await rowsOf(page, 'Operations over the whole run')).find((each) => each.cells[0] === 'forward');
      assert.deepEqual(row.cells.slice(1), ['8', shownBytes(usage.allocated), shownBytes(usage.self_allocated), changed(Math.round(usage.total_delta / 8)), changed(usage.max_delta), shownBytes(usage.peak), shownBytes(usage.self_peak), shownBytes(usage.live)]);
      await page.locator('#segments [data-value=all]').click();
      assert.deepEqual(
        (await rowsOf(page, 'Every segment')).map((each) => [each.titles[3], ...each.titles.slice(4)]),
        space.segments.map((segment, index) => [`${7 * (index + 1)} ns`, ...bytesOf.map((key) => exactBytes(segment[key]))]),
      );
    });
  });
});

describe('the allocator', () => {
  it('has active bytes beside reserved and live ones', async () => {
    const waiting = 3 * 2 ** 20;
    await on('active', runOf(training(), { reserved: [0, 80 * 2 ** 20], waiting: [0, waiting] }), {}, async (page, path) => {
      const { active } = main(runIn(await readFile(path, 'latin1')));
      const numbers = Object.fromEntries(await page.locator('#allocator dl.numbers > div').evaluateAll((all) => all.map((each) => [each.querySelector('dt').textContent, each.querySelector('dd').textContent])));
      assert.equal(numbers['Peak active'], shownBytes(active.peak));
      assert.equal(numbers['Active at end'], shownBytes(waiting));
      assert.equal(numbers['Freed but still in use at the selected moment'], shownBytes(waiting));
    });
    await on('not-active', trained(), {}, async (page) => assert.doesNotMatch(await text(page, '#allocator'), /active/i));
  });
});

describe('tables', () => {
  it('of checkpoints have what was live, and the largest blocks of all spaces', async () => {
    const made = runOf(training(), { bare: true });
    const block = (bytes, name, shape, dtype, operation) => ({ address: 4096, bytes, operation, category: 'other', name, shape, dtype, requires_grad: 'unknown' });
    const checkpoint = (name, number, time_ns, spaces) => ({
      name,
      number,
      time_ns,
      live_bytes: spaces.reduce((sum, [, blocks]) => sum + blocks.reduce((of, b) => of + b.bytes, 0), 0),
      live_blocks: spaces.reduce((sum, [, blocks]) => sum + blocks.length, 0),
      spaces: spaces.map(([space, blocks]) => ({ space, live_bytes: 0, live_blocks: blocks.length, largest_blocks: blocks })),
    });
    made.run.profile.checkpoints = [
      checkpoint('after_model_load', 0, 0, [['cpu', [block(1000, '', '', '', 'forward/<b>')]], ['cuda:0', [block(4096, 'wte', '[32, 32]', 'float32', null)]]]),
      checkpoint(null, 9, 2000, [['cpu', []]]),
    ];
    made.run.profile.checkpoint_count = 12;
    await on('checkpoints', made, {}, async (page) => {
      await page.locator('#segments [data-value=checkpoints]').click();
      const rows = await rowsOf(page, 'Checkpoints');
      assert.deepEqual(
        rows.map((row) => row.cells),
        [
          ['after_model_load', '1', '0 ns', shownBytes(5096), '2', shownBytes(4096), `wte [32, 32] float32 (${shownBytes(4096)}), forward/<b> (${shownBytes(1000)})`],
          ['(periodic)', '10', '2.00 µs', '0 B', '0', '0 B', ''],
        ],
      );
      assert.match(await text(page, '#segments .counter'), /10 others of 12 not kept/);
    });
    await on('no-checkpoints', trained(), {}, async (page) => assert.equal(await page.locator('#segments [data-value=checkpoints]').count(), 0));
  });
  it('of segments have the tracker’s numbers', async () => {
    await on('training', trained(), {}, async (page, path) => {
      const run = runIn(await readFile(path, 'latin1'));
      await page.locator('#segments [data-value=all]').click();
      const rows = await rowsOf(page, 'Every segment');
      const digits = (title) => Number(title.replace('\u2212', '-').replace(/[^0-9-]/g, ''));
      assert.deepEqual(
        rows.map((r) => [r.cells[0], ...r.titles.slice(4).map(digits)]),
        main(run).segments.map((s) => [s.segment, s.segment_peak, s.allocations, s.deallocations, s.segment_change, s.cumulative_peak, s.cumulative_current]),
      );
      await page.locator('#segments [data-value=folded]').click();
      const folded = await rowsOf(page, 'Segments, folded by name');
      assert.deepEqual(folded.map((r) => [r.cells[0], r.cells[1]]), [['MODEL_CREATION', '1'], ['FORWARD_PASS', '4'], ['BACKWARD_PASS', '4'], ['OPTIMIZER_STEP', '4'], ['END_TRACE', '1']]);
      await page.locator('#segments [data-value=steps]').click();
      assert.equal((await rowsOf(page, 'Steps')).length, 4);
    });
  });

  it('of operations have the profile’s numbers, sort and search', async () => {
    await on('training', trained(), {}, async (page, path) => {
      const run = runIn(await readFile(path, 'latin1'));
      const label = 'Operations over the whole run';
      const find = (rows, name) => rows.find((r) => r.cells[0] === name);
      const usage = run.profile.operations.find((o) => o.path === 'forward').usage.find((u) => u.space === 'cuda:0');
      const forward = find(await rowsOf(page, label), 'forward');
      assert.equal(forward.titles[2], exactBytes(usage.allocated));
      assert.equal(forward.titles[3], exactBytes(usage.self_allocated));
      await page.locator('#operations th button', { hasText: /^Self$/ }).click();
      const sorted = await rowsOf(page, label);
      const selfs = sorted.map((r) => Number(r.titles[3].replace(/[^0-9]/g, '')));
      assert.deepEqual(selfs, [...selfs].sort((a, b) => b - a));
      assert.ok(find(sorted, 'forward/layer0'), 'sorted rows have whole paths');
      await page.locator('#operations input').fill('layer3');
      assert.deepEqual((await rowsOf(page, label)).map((r) => r.cells[0]), ['forward/layer3']);
      assert.match(await text(page, '#operations .counter'), /^1 of /);
    });
  });

  it('copy as CSV with all digits', async () => {
    await on('training', trained(), {}, async (page, path) => {
      await page.context().grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => {});
      const run = runIn(await readFile(path, 'latin1'));
      await page.locator('#segments [data-value=all]').click();
      // What reaches the clipboard, whichever way it is put there.
      await page.evaluate(() => {
        navigator.clipboard.writeText = (written) => Promise.resolve((window.copied = written));
      });
      await page.locator('#segments button', { hasText: 'Copy as CSV' }).click();
      const lines = (await page.evaluate(() => window.copied)).trim().split('\r\n');
      assert.equal(lines.length, 1 + run.profile.segments.length);
      const first = main(run).segments[0];
      assert.ok(lines[1].startsWith('MODEL_CREATION,1,'));
      assert.ok(lines[1].endsWith([first.segment_peak, first.allocations, first.deallocations, first.segment_change, first.cumulative_peak, first.cumulative_current].join(',')));
    });
  });

  it('of 100,000 rows have only those in sight as elements', async () => {
    await on('huge', huge(), {}, async (page) => {
      await page.locator('#segments [data-value=steps]').click();
      assert.match(await text(page, '#segments .counter'), /^100,000 rows$/);
      assert.ok((await page.locator('#segments tbody tr').count()) < 100);
      await page.locator('#segments .rows').evaluate((rows) => (rows.scrollTop = rows.scrollHeight));
      await settle(page);
      assert.equal((await rowsOf(page, 'Steps')).at(-1).cells[0], '100,000');
    });
  });
});

describe('operations and blocks over time', () => {
  it('say what lies under the pointer', async () => {
    await on('training', trained(), { hash: '#lanes?unit=event' }, async (page) => {
      const lanes = page.locator('#lanes canvas');
      await lanes.scrollIntoViewIfNeeded();
      const box = await lanes.boundingBox();
      let forward = null;
      for (let x = 74; x < box.width - 14 && !forward; x += 6) {
        await page.mouse.move(box.x + x, box.y + 8);
        const tip = await page.evaluate(() => document.querySelector('#tip').innerText);
        if (/^forward\n/.test(tip)) forward = tip;
      }
      assert.match(forward, /duration/);
      assert.match(forward, /memory\s+\+[\d.]+ MiB in cuda:0/);
      await page.locator('#lanes summary').click();
      await eventually(async () => assert.ok((await rowsOf(page, 'Invocations of operations in the range')).some((r) => r.cells[0] === 'forward/layer0')));

      const blocks = page.locator('#blocks canvas');
      await blocks.scrollIntoViewIfNeeded();
      const area = await blocks.boundingBox();
      const tip = await tipAt(page, area.x + area.width - 60, area.y + area.height - 23.5);
      assert.match(tip, /layers\.0\.weight float32 \[512, 976\]/);
      assert.match(tip, /1\.91 MiB \(2,000,000 B\)/);
      assert.match(tip, /0x7f0000000000/);
      await page.locator('#blocks summary').click();
      await eventually(async () => assert.ok((await rowsOf(page, 'Blocks in the range')).length > 10));
    });
  });
});

describe('operations over time, of a profile', () => {
  const invocation = (thread, begin_ns, end_ns, delta) => ({ thread, begin_ns, end_ns, delta, peak: 0 });
  const made = () => {
    const of = runOf(training(), { bare: true });
    for (const [index, operation] of of.run.profile.operations.entries()) {
      for (const usage of operation.usage) {
        const first = invocation(7, 1000 + 10_000 * index, 9000 + 10_000 * index, 1 + index);
        Object.assign(usage, { first_invocation: first, last_invocation: invocation(-1, 0, 0, 0), largest_invocation: first });
      }
    }
    return of;
  };

  it('are the invocations that it keeps', async () => {
    const of = made();
    const { operations } = of.run.profile;
    await on('kept', of, { hash: '#lanes' }, async (page) => {
      await page.locator('#lanes summary').click();
      const kept = operations.filter((operation) => operation.usage.some((usage) => usage.space === 'cuda:0'));
      await eventually(async () => {
        const rows = await rowsOf(page, 'Invocations of operations in the range');
        assert.deepEqual(rows.map((row) => [row.cells[0], row.titles[2], row.titles[3], row.titles[4], row.cells[5]]), kept.map((operation) => {
          const index = operations.indexOf(operation);
          return [operation.path, `${(1000 + 10_000 * index).toLocaleString('en-US')} ns`, '8,000 ns', `${1 + index} B`, '7'];
        }));
      });
      const calls = operations.reduce((sum, operation) => sum + operation.invocations, 0);
      assert.match(await text(page, '#lanes .about'), new RegExp(`here ${kept.length} of ${calls}\\. A trace has all.*trace_file`));
      const box = await page.locator('#lanes canvas').boundingBox();
      const duration = of.run.profile.duration_ns;
      assert.match(await tipAt(page, box.x + 72 + (5000 / duration) * (box.width - 84), box.y + 8), /^model\s+duration\s+8\.00 .s\s+memory\s+\+1 B in cuda:0/);
    });
  });

  it('are missing with the way to get them, where it keeps none', async () => {
    await on('none-kept', runOf(training(), { bare: true }), {}, async (page) => assert.match(await text(page, '#lanes .about'), /no invocations\. A trace has all.*MEMPROF_TRACE=1/));
  });
});

describe('the page', () => {
  it('follows a link at once after a change', async () => {
    await on('training', trained(), { hash: '#timeline?unit=event' }, async (page) => {
      // What the address becomes by the change must not take the place of the link that was followed since.
      await page.evaluate(
        () =>
          new Promise((done) => {
            addEventListener('hashchange', () => done(), { once: true });
            dispatchEvent(new KeyboardEvent('keydown', { key: '+' }));
            location.hash = '#segments?unit=event&at=peak';
            dispatchEvent(new Event('pagehide'));
          }),
      );
      assert.equal((await state(page)).view, 'segments');
    });
  });

  it('keeps what is shown in its address', async () => {
    const hash = '#timeline?space=cpu&by=operation&unit=event&from=2&to=90&at=e8';
    await on('training', trained(), { hash }, async (page) => {
      await press(page, 'ArrowRight');
      const now = await state(page);
      assert.deepEqual({ ...now, at: '' }, { view: 'timeline', space: 'cpu', by: 'operation', unit: 'event', from: '2', to: '90', at: '' });
      assert.match(await text(page, '[data-answer=peak] h2'), /Peak of cpu/);
      for (const strange of ['#', '#nowhere', '#timeline?from=9&to=1', '#timeline?at=e99999999&space=none', '#live?at=-1', '#%E0%A4%A?x=%']) {
        await goTo(page, strange);
      }
    });
  });

  it('has light and dark colours, by the system and by choice', async () => {
    const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const pixel = (page) => page.locator('#timeline canvas').first().evaluate((canvas) => {
      const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      return [...copy.getImageData(2, 2, 1, 1).data].slice(0, 3).join();
    });
    await on('training', trained(), { scheme: 'dark' }, async (page) => {
      assert.equal(await background(page), 'rgb(21, 24, 28)');
      assert.equal(await pixel(page), '21,24,28');
      await shot(page, 'training-dark');
      await page.locator('.theme').click();
      await settle(page);
      assert.equal(await background(page), 'rgb(255, 255, 255)');
      assert.equal(await pixel(page), '255,255,255');
    });
    await on('training', trained(), { scheme: 'light' }, async (page) => {
      assert.equal(await background(page), 'rgb(255, 255, 255)');
      await shot(page, 'training-light');
    });
  });

  it('can be read at 400 pixels: nothing is wider than the window', async () => {
    await on('training', trained(), { width: 400, height: 800 }, async (page) => {
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 400);
      await shot(page, 'training-400');
    });
  });

  it('shows hostile names as text', async () => {
    const hostile = ['<img src=x onerror="alert(1)">', '</script><script>alert(2)</script>', '"><svg onload=alert(3)>', '\u202egnirts', '\u0000\u0007\n\t', '=cmd|calc', 'x'.repeat(5000), '{{constructor}}', '__proto__', '"address": 99999999999999999999'];
    let next = 0;
    const names = () => hostile[next++ % hostile.length];
    const recorder = training({ steps: 3, spaces: ['cpu', '<b>cuda</b>'], names });
    const made = runOf(recorder, { title: hostile[1], source: hostile[0], notes: [hostile[2]], device: hostile[0], thread: hostile[3], stepEnd: 'x', facts: { '<i>facts</i>': hostile.map((name) => ({ name, '<b>key</b>': 1 })) } });
    for (const hash of ['', '#timeline?by=operation&unit=event', '#facts']) {
      await on('hostile', made, { hash }, async (page) => {
        let dialogs = 0;
        page.on('dialog', () => (dialogs += 1));
        for (const key of ['p', 'c', 'ArrowRight', 'x']) await press(page, key);
        for (const summary of await page.locator('summary').all()) await summary.click();
        for (const name of await page.locator('.choice [data-value]').all()) if (await name.isVisible()) await name.click();
        assert.equal(dialogs, 0);
        assert.equal(await page.evaluate(() => document.querySelectorAll('img, svg, main script, main b:not(.keys b), main i').length), 0);
        assert.ok((await page.evaluate(() => document.body.innerText)).includes('<img src=x'));
        assert.ok(!(await page.evaluate(() => document.body.innerText)).includes('\u202e'));
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 1280);
        if (hash) return;
        await shot(page, 'hostile');
      });
    }
  });

  it('opens an empty capture', async () => {
    const nothing = new Recorder({ spaces: [] });
    nothing.segment('END_TRACE');
    for (const bare of [true, false]) {
      await on(bare ? 'empty-profile' : 'empty', runOf(nothing, { bare }), {}, async (page) => {
        assert.match(await text(page, 'main'), /Nothing was recorded/);
        for (const key of ['p', 'n', '+', 'ArrowLeft', '3', '0', 'c', 'x']) await press(page, key);
        await shot(page, bare ? 'empty-profile' : 'empty');
      });
    }
    const quiet = new Recorder();
    quiet.segment('QUIET');
    await on('quiet', runOf(quiet), {}, async (page) => {
      assert.equal(await text(page, '[data-answer=peak] .value'), '0 B');
      for (const key of ['p', 'n', '+', 'ArrowLeft', '0', 'c', 'x']) await press(page, key);
    });
  });

  it('says what is wrong with a file that was cut off', async () => {
    const path = await write('cut', trained());
    const whole = await readFile(path, 'latin1');
    const { writeFile } = await import('node:fs/promises');
    await writeFile(path, whole.replace(/<script type="application\/octet-stream" id="memprof-columns">[^<]*<\/script>/, ''), 'latin1');
    const page = await open(browser, path);
    assert.equal(await text(page, '[role=alert]'), 'This page was cut off: its tables are missing.');
    await close(page);
  });

  it('has a policy that lets nothing in', async () => {
    await on('training', trained(), {}, async (page) => {
      await page.evaluate(async () => {
        const violations = [];
        document.addEventListener('securitypolicyviolation', (event) => violations.push(event.effectiveDirective));
        const script = document.createElement('script');
        script.textContent = 'window.intruder = 1';
        document.body.append(script);
        const image = document.createElement('img');
        image.src = 'data:image/gif;base64,R0lGODlhAQABAAAAACw=';
        document.body.append(image);
        const styled = document.createElement('p');
        styled.setAttribute('style', 'color: red');
        document.body.append(styled);
        await fetch('data:text/plain,hello').catch(() => 0);
        window.blocked = violations;
      });
      await eventually(async () => assert.deepEqual(await page.evaluate(() => [...new Set(window.blocked)].sort()), ['connect-src', 'img-src', 'script-src-elem', 'style-src-attr']));
      assert.equal(await page.evaluate(() => window.intruder), undefined);
      page.messages.length = 0;
    });
  });

  it('can be used by keys alone, and names what it shows', async () => {
    await on('training', trained(), {}, async (page) => {
      const reached = new Set();
      for (let i = 0; i < 120; i += 1) {
        await page.keyboard.press('Tab');
        reached.add(await page.evaluate(() => document.activeElement.closest('section')?.id ?? document.activeElement.closest('header')?.tagName ?? ''));
      }
      for (const id of ['answers', 'timeline', 'live', 'lanes', 'blocks', 'segments', 'operations', 'HEADER']) assert.ok(reached.has(id), id);
      const unnamed = await page.evaluate(() => [...document.querySelectorAll('canvas, button, input, select, table, section')].filter((e) => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 80)));
      assert.deepEqual(unnamed, []);
      await page.evaluate(() => document.activeElement.blur());
      await press(page, '?');
      assert.ok(await page.locator('dialog').isVisible());
      await page.keyboard.press('Escape');
      await press(page, '3');
      assert.equal((await state(page)).view, 'live');
      await press(page, '/');
      assert.equal(await page.evaluate(() => document.activeElement.type), 'search');
    });
  });

  it('prints its tables', async () => {
    await on('training', trained(), { scheme: 'dark' }, async (page) => {
      // What is printed is what the charts are when the event has been handled, not a frame later.
      const pixel = await page.evaluate(() => {
        dispatchEvent(new Event('beforeprint'));
        const copy = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        copy.drawImage(document.querySelector('#timeline canvas'), 0, 0);
        return [...copy.getImageData(2, 2, 1, 1).data].slice(0, 3).join();
      });
      assert.equal(pixel, '255,255,255');
      await page.emulateMedia({ media: 'print' });
      await settle(page);
      assert.equal(await page.locator('nav').isVisible(), false);
      assert.ok(await page.locator('#segments table').isVisible());
      assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
      await shot(page, 'training-print');
      await page.emulateMedia({ media: 'screen' });
      await page.evaluate(() => dispatchEvent(new Event('afterprint')));
    });
  });

  it('of ten million events paints in a second and pans at 30 frames a second', async (context) => {
    await on('huge', huge(), { prepare: countProcessorTime }, async (page, path) => {
      const painting = await page.processorMs();
      const painted = await page.evaluate(() => performance.getEntriesByType('measure').find((m) => m.name === 'memprof-first-paint')?.duration);
      const file = await readFile(path);
      context.diagnostic(`page of ${(file.length / 1e6).toFixed(2)} MB`);
      assert.ok(file.length < 5e6);
      context.diagnostic(`first paint after ${painted.toFixed(0)} ms, ${painting.toFixed(0)} ms of the main thread`);
      assert.ok(painting < 1000);
      await shot(page, 'huge', false);
      for (const [name, selector] of [['timeline', '#timeline'], ['lanes', '#lanes'], ['blocks', '#blocks']]) {
        await page.locator(selector).scrollIntoViewIfNeeded();
        await goTo(page, `${selector}?from=200000000000&to=500000000000`);
        const before = await page.processorMs();
        const { frames, seconds } = await page.evaluate(
          () =>
            new Promise((done) => {
              const begin = performance.now();
              let frames = 0;
              const next = () => {
                const seconds = (performance.now() - begin) / 1000;
                if (seconds > 2) return done({ frames, seconds });
                frames += 1;
                dispatchEvent(new KeyboardEvent('keydown', { key: frames % 40 < 20 ? 'd' : 'a' }));
                requestAnimationFrame(next);
              };
              requestAnimationFrame(next);
            }),
        );
        const each = ((await page.processorMs()) - before) / frames;
        context.diagnostic(`${name}: ${(frames / seconds).toFixed(0)} frames a second while panning, ${each.toFixed(1)} ms of the main thread each`);
        assert.ok(each < 1000 / 30, `${name}: ${each} ms`);
        if (process.env.MEMPROF_TEST_FRAMES) assert.ok(frames / seconds >= process.env.MEMPROF_TEST_FRAMES, `${name}: ${frames / seconds}`);
      }
    });
  });
});

describe('a waterfall', () => {
  const operation = (name, bytes, paths = bytes.map((held) => (held > 0 ? 1 : 0))) => ({ operation: name, bytes, changes: changesOf(bytes), blocks: paths, paths });
  const changesOf = (bytes) => bytes.slice(1).map((held, index) => held - bytes[index]);
  const sumOf = (rows) => rows[0].bytes.map((_, index) => rows.reduce((sum, row) => sum + row.bytes[index], 0));
  const part = (name, ...operations) => ({ part: name, bytes: sumOf(operations), changes: changesOf(sumOf(operations)), operations });
  const made = (parts, segments = ['BACKWARD_PASS', 'FORWARD_PASS', 'FORWARD_PASS']) => {
    const peaks = sumOf(parts);
    const titles = ['estimate', 'no dispatch', 'meas<b>ured'];
    const columns = peaks.map((peak_bytes, index) => ({ title: titles[index], file: null, space: 'cpu', mode: index < 2 ? 'no_dispatch' : 'normal', peak_bytes, peak_segment: segments[index], peak_operation: 'forward/head', has_categories: true }));
    const categories = [{ category: 'optimizer_state', bytes: peaks, changes: changesOf(peaks) }];
    return { run: { format: 'memprof-waterfall', version: 1, columns, changes: changesOf(peaks), parts, categories, title: 'Waterfall', notes: [], detail: null } };
  };
  const differing = () => made([part('attention', operation('forward/attention/scores', [1000, 3000, 3000]), operation('forward/attention/own', [0, 0, 48])), part('mlp', operation('forward/mlp', [500_000, 499_000, 499_000], [12, 12, 12])), part('head', operation('lm_head', [700, 700, 700]))]);

  it('says each peak, and why the next one is another', async () => {
    for (const scheme of ['light', 'dark']) {
      await on('waterfall', differing(), { scheme }, async (page) => {
        const values = await page.locator('#answers .value').allInnerTexts();
        assert.deepEqual(values, [shownBytes(501_700), '+1000 B (0.2 %)', shownBytes(502_700), '+48 B (< 0.1 %)', shownBytes(502_748)]);
        assert.match(await page.locator('#answers').innerText(), /attention \+1\.95 KiB\s+mlp \u22121000 B/);
        assert.match(await page.locator('#answers').innerText(), /The peaks are in different phases/);
        assert.match(await page.locator('#answers').innerText(), /meas<b>ured/);
        const rows = await rowsOf(page, 'Operations at the peak');
        assert.deepEqual(rows[1].cells, ['attention', 'forward/attention/own', '\u2013', '\u2013', '48 B', '0 B', '+48 B']);
        assert.equal(rows[2].cells[1], 'forward/mlp \u00d712');
        assert.equal(rows[2].titles[5], exactBytes(-1000));
        // Small differences of large peaks: the axis begins near them, and says so by its ticks and a cut in the bars.
        assert.equal(await page.locator('[aria-label=Axis] [aria-pressed=true]').innerText(), 'Around the differences');
        await shot(page, `waterfall-${scheme}`, false);
      });
    }
  });

  it('is read with the keyboard, and leads to the operations of a part', async () => {
    await on('waterfall-keys', differing(), {}, async (page) => {
      await page.locator('.waterfall canvas').focus();
      await press(page, 'ArrowDown');
      assert.match(await text(page, '.tip'), /^estimate\s+peak\s+501,700 B/);
      await press(page, 'ArrowDown');
      assert.match(await text(page, '.tip'), /^attention.*\+2,000 B/s);
      await press(page, 'Enter');
      assert.equal(await page.locator('#operations input').inputValue(), 'attention');
      assert.equal((await rowsOf(page, 'Operations at the peak')).length, 2);
    });
  });

  it('says that columns are equal', async () => {
    await on('waterfall-equal', made([part('mlp', operation('forward/mlp', [5000, 5000, 5000]))], ['A', 'A', 'A']), {}, async (page) => {
      assert.deepEqual(await page.locator('[data-answer=change] .value').allInnerTexts(), ['Equal', 'Equal']);
      assert.equal(await page.locator('[data-answer=notes]').count(), 0);
    });
  });

  it('fits a narrow window', async () => {
    for (const [width, scheme] of [[360, 'light'], [400, 'dark'], [900, 'light'], [1400, 'dark']]) {
      await on('waterfall-narrow', differing(), { width, scheme }, async (page) => {
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
        await shot(page, `waterfall-${width}-${scheme}`);
        // Bars of three colours at least, for peaks, more and less, besides the background and the smoothed text.
        const colours = await page.locator('.waterfall canvas').evaluate((canvas) => {
          const pixels = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
          const count = new Map();
          for (const pixel of pixels) count.set(pixel, (count.get(pixel) ?? 0) + 1);
          return [...count.values()].filter((number) => number > 100).length;
        });
        assert.ok(colours >= 4, `${colours} colours at ${width} pixels`);
      });
    }
  });
});

describe('a comparison', () => {
  const row = (name, owner, before_bytes, after_bytes, what = 'more', operations = 1) => ({ [name]: owner, before_bytes, after_bytes, change_bytes: after_bytes - before_bytes, before_blocks: 1, after_blocks: 2, operations, what });
  const run = (title, bytes, segment, exact = true) => ({ title, file: `${title}.memtrace`, space: 'cpu', mode: 'normal', exact, bytes, blocks: 2, segment, step: 0, operation: 'forward', reserved_bytes: 0, resident_bytes: null, runs: 1, least_bytes: bytes, median_bytes: bytes, greatest_bytes: bytes });
  // Four points in the first segment and two in the second; the second run takes ten times as long.
  const curve = (slower, peaks, names = ['FORWARD', 'BACKWARD']) => ({
    moment_ns: 400 * slower,
    times_ns: [0, 100, 200, 300, 400, 500].map((time) => time * slower),
    peaks,
    segments: names.map((name, index) => ({ name, begin_ns: 400 * slower * index, end_ns: 400 * slower * (index + 1) })),
  });
  const before = [1000, 2000, 3000, 4000, 5000, 1000];
  const after = [1000, 2000, 3000, 4000, 8000, 1000];
  const made = (changes = {}) => ({
    run: {
      format: 'memprof-comparison', version: 1, moment: 'peak', equal: false, change_bytes: 3000, same_moment: true, more_than_noise: null,
      before: run('before', 5000, 'BACKWARD'), after: run('after', 8000, 'BACKWARD'), other_spaces: [], unchanged_bytes: 2000,
      operations: [row('operation', 'h.*/mlp', 2000, 4500, 'more', 12), row('operation', 'cache', 0, 1000, 'came'), row('operation', '<b>old</b>', 500, 0, 'went')],
      callers: [row('caller', 'read_batch<float>(int)', 0, 2000, 'came'), row('caller', null, 500, 1500)],
      categories: [row('category', 'optimizer_state', 5000, 8000)], sizes: [row('least_size', 1024, 2000, 5000)],
      title: 'Comparison', notes: [], curves: [curve(1, before), curve(10, after)], detail: null, ...changes,
    },
  });
  const tips = async (page, keys) => {
    await page.locator('.runs canvas').focus();
    for (const key of keys) await press(page, key);
    return text(page, '.tip');
  };

  it('says by how much the runs differ, and what makes the difference', async () => {
    for (const scheme of ['light', 'dark']) {
      await on('comparison', made(), { scheme }, async (page) => {
        assert.deepEqual(await page.locator('#answers .value').allInnerTexts(), [shownBytes(5000), `+${shownBytes(3000)} (+60.0 %)`, shownBytes(8000)]);
        assert.match(await text(page, '[data-answer=change]'), /h\.\*\/mlp \+2\.44 KiB\s+cache \+1000 B\s+<b>old<\/b> \u2212500 B/);
        assert.equal(await page.locator('[data-answer=notes]').count(), 0);
        const rows = await rowsOf(page, 'Operations that differ');
        assert.deepEqual(rows.map((each) => each.cells), [
          ['h.*/mlp \u00d712', shownBytes(2000), shownBytes(4500), `+${shownBytes(2500)}`, '+1', ''],
          ['cache', '0 B', '1000 B', '+1000 B', '+1', 'new'],
          ['<b>old</b>', '500 B', '0 B', '\u2212500 B', '+1', 'gone'],
        ]);
        assert.deepEqual((await rowsOf(page, 'Code that asked for what differs')).map((each) => each.cells), [
          ['read_batch<float>(int)', '0 B', shownBytes(2000), `+${shownBytes(2000)}`, '+1', 'new'],
          ['blocks without a stack', '500 B', shownBytes(1500), '+1000 B', '+1', ''],
        ]);
        assert.deepEqual((await rowsOf(page, 'Sizes of blocks that differ'))[0].cells.slice(0, 3), ['from 1.00 KiB', shownBytes(2000), shownBytes(5000)]);
        await shot(page, `comparison-${scheme}`);
      });
    }
  });

  it('has both runs on one axis, segment by segment or over time', async () => {
    await on('comparison-axis', made(), {}, async (page) => {
      const pressed = () => page.locator('[aria-label=Axis] [aria-pressed=true]').innerText();
      assert.equal(await pressed(), 'Segment by segment');
      // The same work has the same place, though the second run was slower: only the second segment differs.
      assert.match(await tips(page, ['ArrowRight']), /^FORWARD, segment 1\s+before\s+1,000 B\s+after\s+1,000 B\s+change\s+0 B/);
      const steps = await page.locator('.runs canvas').evaluate((canvas) => Math.ceil((canvas.clientWidth - 84) / 2 / 10) + 1);
      assert.match(await tips(page, Array(steps).fill('Shift+ArrowRight')), /^BACKWARD, segment 2\s+before\s+5,000 B\s+after\s+8,000 B\s+change\s+\+2\.93 KiB/);
      await page.locator('[aria-label=Axis] [data-value=time]').click();
      assert.equal(await pressed(), 'Time');
      // The first run ends after an eighth of the axis.
      assert.match(await tips(page, Array(steps).fill('Shift+ArrowRight')), /before\s+not running\s+after\s+8,000 B/);
    });
  });

  it('has only the axis of time where the runs have different segments', async () => {
    await on('comparison-time', made({ curves: [curve(1, before), curve(1, after, ['FORWARD', 'EVAL'])] }), {}, async (page) => {
      assert.equal(await page.locator('[aria-label=Axis]').count(), 0);
      assert.match(await tips(page, ['ArrowRight']), /before\s+1,000 B\s+after\s+1,000 B/);
    });
  });

  it('says what makes the numbers doubtful, and that runs are equal', async () => {
    const doubtful = made({ same_moment: false, more_than_noise: false, after: run('after', 8000, 'FORWARD', false) });
    await on('comparison-doubtful', doubtful, {}, async (page) => {
      const notes = await text(page, '[data-answer=notes]');
      for (const note of [/another moment of the program/, /Not exact: after/, /may be chance/]) assert.match(notes, note);
    });
    const equal = made({ equal: true, change_bytes: 0, operations: [], callers: [], categories: [], sizes: [], after: run('after', 5000, 'BACKWARD'), curves: [curve(1, before), curve(1, before)] });
    await on('comparison-equal', equal, {}, async (page) => {
      assert.equal(await text(page, '[data-answer=change] .value'), 'Equal');
      assert.equal(await page.locator('#operations').count(), 0);
    });
  });

  it('fits a narrow window, and runs without events', async () => {
    const empty = { moment_ns: null, times_ns: [], peaks: [], segments: [] };
    for (const [width, curves] of [[360, made().run.curves], [900, [empty, curve(1, after)]], [400, [empty, empty]]]) {
      await on('comparison-narrow', made({ curves }), { width }, async (page) => {
        assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
      });
    }
  });
});

describe('call stacks', () => {
  /** Peak 1,550 B: forward 1,450 (1,050 by train, of which attention 900; 400 by load), 100 without a stack. End 500 B. */
  const asked = () => {
    const recorder = new Recorder();
    recorder.begin('forward');
    recorder.allocate(1000, 150, 'other', { stack: ['main', 'train (model.cpp:4)'] });
    recorder.allocate(2000, 900, 'other', { stack: ['main', 'train (model.cpp:4)', 'attention (model.cpp:9)'] });
    recorder.allocate(4000, 400, 'other', { stack: ['main', 'start', 'load'] });
    recorder.end();
    recorder.allocate(5000, 100);
    recorder.free(2000);
    recorder.free(1000);
    recorder.allocate(6000, 20, 'other', { stack: ['main', 'train (model.cpp:4)'] });
    recorder.free(6000);
    recorder.segment('STEP');
    return runOf(recorder, { stacks: { missing_blocks: 1 } });
  };
  const label = 'Calls that asked for memory';
  const cells = async (page) => Object.fromEntries((await rowsOf(page, label)).map((row) => [row.cells[0], row.titles[1]]));
  const calls = async (page) => {
    await page.locator('[data-value=by-call]').click();
    await settle(page);
  };
  const choose = async (page, value) => {
    await page.locator(`.stacks [data-value=${value}]`).first().click();
    await settle(page);
  };

  it('are not there if the recording has none', async () => {
    await on('training', trained(), {}, async (page) => {
      assert.equal(await page.locator('[data-value=by-call]').count(), 0);
      assert.equal(await page.locator('.stacks').count(), 0);
    });
  });

  it('show who asked for what was live at the peak and at the end, and for everything', async () => {
    await on('stacks', asked(), {}, async (page) => {
      await calls(page);
      assert.equal(await text(page, '#live h2'), 'The calls that asked for memory');
      assert.match(await text(page, '.stacks .lead'), /\(1,550 B\) were live at .*, the peak\. 1 block should have a stack and has none\./);
      assert.deepEqual(await cells(page), {
        'everything live': '1,550 B', forward: '1,450 B', main: '1,450 B', 'train (model.cpp:4)': '1,050 B', 'attention (model.cpp:9)': '900 B', 'start \u203a load': '400 B', '(without a stack)': '100 B',
      });
      await choose(page, 'end');
      assert.deepEqual(await cells(page), { 'everything live': '500 B', forward: '400 B', main: '400 B', 'start \u203a load': '400 B', '(without a stack)': '100 B' });
      await choose(page, 'all');
      const all = await cells(page);
      assert.deepEqual([all['everything allocated'], all['attention (model.cpp:9)'], all['(without a stack)']], ['1,570 B', '900 B', '100 B']);
      // Outside the operation, the same calls are others.
      assert.equal((await rowsOf(page, label)).filter((row) => row.titles[1] === '20 B').length, 1);
      await choose(page, 'at');
      await page.locator('.icicle canvas').last().focus();
      assert.deepEqual(await cells(page).then((found) => found['everything live']), '1,550 B');
      await page.locator('[data-value=by-operation]').click();
      assert.equal(await text(page, '#live h2'), 'What was live at the selected moment');
      assert.equal(await page.locator('.stacks').isVisible(), false);
    });
  });

  it('are searched, and what is found is summed once', async () => {
    await on('stacks', asked(), {}, async (page) => {
      await calls(page);
      const search = page.getByLabel('Search calls', { exact: true });
      await search.fill('MODEL.cpp');
      assert.equal(await text(page, '.stacks .matches'), '2 cells: 1.03 KiB, 67.7 % of the peak');  // 1,050 of 1,550
      await search.fill('start');  // hidden in a cell of several calls
      assert.equal(await text(page, '.stacks .matches'), '1 cell: 400 B, 25.8 % of the peak');
      await choose(page, 'end');
      assert.equal(await text(page, '.stacks .matches'), '1 cell: 400 B, 80.0 % of all live');
      await search.fill('nobody');
      assert.equal(await text(page, '.stacks .matches'), 'Nothing found.');
      await search.fill('');
      assert.equal(await text(page, '.stacks .matches'), '');
    });
  });

  it('have a history, by mouse and by keyboard', async () => {
    await on('stacks', asked(), {}, async (page) => {
      await calls(page);
      const canvas = page.locator('.stacks .icicle canvas');
      await canvas.scrollIntoViewIfNeeded();
      const box = await canvas.boundingBox();
      // everything, forward, main, train, attention: 900 of 1,550 from the left.
      await page.mouse.click(box.x + box.width * (450 / 1550), box.y + 24 * 4 + 12);
      await settle(page);
      assert.match(await text(page, '.flame-history .about'), /^attention \(model\.cpp:9\): 900 B live at the peak, 900 B at most, at .*, 0 B at the end\. 9 moments: /);
      assert.equal((await rowsOf(page, label)).length, 1);
      await choose(page, 'moments');
      const values = (await rowsOf(page, 'The chosen call over time')).map((row) => row.cells[2]);
      assert.deepEqual(values, ['0 B', '0 B', '900 B', '900 B', '900 B', '0 B', '0 B', '0 B', '0 B']);
      await canvas.focus();
      await press(page, 'Escape');  // out to train
      assert.match(await text(page, '.flame-history .about'), /^train \(model\.cpp:4\): 1\.03 KiB live at the peak/);
      const train = (await rowsOf(page, 'The chosen call over time')).map((row) => row.titles[2]);
      assert.deepEqual(train, ['0 B', '150 B', '1,050 B', '1,050 B', '1,050 B', '150 B', '0 B', '0 B', '0 B']);
      await press(page, 'ArrowDown');
      await press(page, 'Enter');
      assert.match(await text(page, '.flame-history .about'), /^attention/);
      await page.getByText('Show everything').last().click();
      assert.match(await text(page, '.flame-history .about'), /^Everything: 1\.51 KiB live at the peak, 500 B at the end\./);
    });
  });

  it('of a sample are marked as estimates, with their error, and add up to what is known', async () => {
    const recorder = new Recorder();
    recorder.begin('step');
    recorder.allocate(0x10_0000, 70_000, 'other', { stack: ['load'] });
    for (let block = 0; block < 100; block += 1) recorder.allocate(0x100_0000 + block * 0x1000, 1000, 'other', { stack: block < 6 ? ['load'] : block < 10 ? ['tokenize'] : null });
    recorder.end();
    recorder.segment('STEP');
    // As docs/stacks.md: 6 of 10 sampled blocks of one size are 60 of 100; its error is 10,000 (2.4 (1 - p))^1/2 = 15,374 B.
    await on('stacks-sampled', runOf(recorder, { stacks: { from_bytes: 65_536, sample_bytes: 65_536 } }), {}, async (page) => {
      await calls(page);
      assert.match(await text(page, '.stacks .lead'), /Blocks from 64\.0 KiB on are exact; with ~, smaller ones were estimated from a sample\./);
      const rows = await rowsOf(page, label);
      assert.deepEqual(rows.map((row) => row.cells.slice(0, 3)), [
        ['everything live', '166 KiB', ''],
        ['step', '166 KiB', ''],  // exact
        ['load', '~127 KiB', '\u00b1 15.0 KiB'],
        ['tokenize', '~39.1 KiB', '\u00b1 15.0 KiB'],
      ]);
      assert.equal(rows[0].titles[1], '170,000 B');
      await page.getByLabel('Search calls', { exact: true }).fill('o');
      assert.equal(await text(page, '.stacks .matches'), '2 cells: ~166 KiB \u00b1 0 B, 100 % of the peak');
      await page.getByLabel('Search calls', { exact: true }).fill('load');
      assert.equal(await text(page, '.stacks .matches'), '1 cell: ~127 KiB \u00b1 15.0 KiB, 76.5 % of the peak');
      await page.getByLabel('Search calls', { exact: true }).fill('step');
      assert.equal(await text(page, '.stacks .matches'), '1 cell: 166 KiB, 100 % of the peak');
      await choose(page, 'moments');
      const history = async (name) => {
        await page.locator('.stacks .icicle canvas').focus();
        for (const key of name === 'step' ? ['ArrowDown', 'Enter'] : ['ArrowDown', 'ArrowDown', 'Enter']) await press(page, key);
        assert.match(await text(page, '.flame-history .about'), new RegExp(`^${name}: `));
        const rows = await rowsOf(page, 'The chosen call over time');
        return [1, 10, 11].map((row) => rows[row].cells[2]);
      };
      // After the large block, and after 9 and 10 small ones, of which 6 are of load: nine are too few to be divided.
      assert.deepEqual(await history('step'), ['68.4 KiB', '77.1 KiB', '78.1 KiB']);
      await page.getByText('Show everything').last().click();
      assert.deepEqual(await history('load'), ['~68.4 KiB', '~68.4 KiB', '~74.2 KiB']);
    });
    const few = new Recorder();
    few.allocate(0x10_0000, 70_000, 'other', { stack: ['load'] });
    for (let block = 0; block < 100; block += 1) few.allocate(0x100_0000 + block * 0x1000, 1000, 'other', { stack: block < 9 ? ['load'] : null });
    few.segment('STEP');
    await on('stacks-few', runOf(few, { stacks: { from_bytes: 65_536, sample_bytes: 65_536 } }), {}, async (page) => {
      await calls(page);
      assert.deepEqual(await cells(page), { 'everything live': '170,000 B', '(below 64.0 KiB, too few sampled)': '100,000 B', load: '70,000 B' });
    });
  });

  it('look like this', async () => {
    for (const [name, options] of [['light-1400', { width: 1400 }], ['dark-1400', { width: 1400, scheme: 'dark' }], ['light-700', { width: 700 }], ['dark-700', { width: 700, scheme: 'dark' }]]) {
      await on('stacks', asked(), options, async (page) => {
        await calls(page);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= options.width);
        await shot(page, `stacks-${name}`);
      });
    }
  });
});
