// Numbers on the page are written as memprof's text writes them (report/text/quantity.hpp), cells of CSV as csv_text.hpp does, and
// paths are read as operation_path.hpp writes them.
import assert from 'node:assert/strict';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const source = join(dirname(fileURLToPath(import.meta.url)), '../src');
async function load(name) {
  const { outputFiles } = await build({ entryPoints: [join(source, name)], bundle: true, format: 'esm', write: false });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].text).toString('base64')}`);
}
const { bytes, percent, time } = await load('format.ts');
const { csvRecord } = await load('csv.ts');
const { splitPath } = await load('data/path.ts');
const { shortenedApart, shortenedName } = await load('names.ts');

describe('numbers', () => {
  it('have three significant digits in a unit that fits', () => {
    const GiB = 2 ** 30;
    const expected = [
      [0, '0 B'], [512, '512 B'], [1023, '1023 B'], [1024, '1.00 KiB'], [5000, '4.88 KiB'], [18_513_664, '17.7 MiB'],
      [999 * 1024, '999 KiB'], [1000 * 1024, '0.977 MiB'], [1000 * 2 ** 20, '0.977 GiB'], [GiB, '1.00 GiB'], [-1.5 * GiB, '\u22121.50 GiB'],
      [2 ** 60, '1.00 EiB'], [0.4, '0 B'], [-0.4, '0 B'],
    ];
    for (const [value, text] of expected) assert.equal(bytes(value), text, value);
  });

  it('are rounded to the even digit halfway, as printf does', () => {
    // 194.5, 195.5, 17.25, 17.75, 4.125 and 4.375 KiB, exactly.
    for (const [value, text] of [[199_168, '194 KiB'], [200_192, '196 KiB'], [17_664, '17.2 KiB'], [18_176, '17.8 KiB'], [4224, '4.12 KiB'], [4480, '4.38 KiB']]) assert.equal(bytes(value), text, value);
  });

  it('of time change their unit at a minute, an hour and a day', () => {
    const s = 1e9;
    const expected = [[850, '850 ns'], [17_900_000, '17.9 ms'], [999_500, '1.00 ms'], [999_499, '999 \u00b5s'], [4.21 * s, '4.21 s'], [59.9 * s, '59.9 s'], [59.96 * s, '1 min 00 s'], [125 * s, '2 min 05 s'], [11_520 * s, '3 h 12 min'], [187_200 * s, '2 d 04 h']];
    for (const [value, text] of expected) assert.equal(time(value), text, value);
  });

  it('of parts have one decimal below a hundred', () => {
    assert.deepEqual([percent(811, 1000), percent(1, 1), percent(1, 10_000), percent(0, 5), percent(1, 0)], ['81.1 %', '100 %', '< 0.1 %', '0.0 %', '']);
  });
});

describe('a record of CSV', () => {
  it('quotes what RFC 4180 says', () => {
    assert.equal(csvRecord(['a', 'b,c', 'say "x"', 'two\nlines', 5, -7]), 'a,"b,c","say ""x""","two\nlines",5,-7\r\n');
  });

  it('has no cell that a spreadsheet would take for a formula', () => {
    assert.equal(csvRecord(['=1+1', '+1', '-1', '@SUM(A1)', '\t=1', '\r=1', '', 'a=b', -1]), '\'=1+1,\'+1,\'-1,\'@SUM(A1),\'\t=1,"\'\r=1",,a=b,-1\r\n');
    assert.equal(csvRecord(['=HYPERLINK("http://x","y")']), '"\'=HYPERLINK(""http://x"",""y"")"\r\n');
  });
});

describe('a path', () => {
  it('is split at the slashes that are not part of a name', () => {
    assert.deepEqual(splitPath('forward/layer 0'), { parent: 'forward', name: 'layer 0' });
    assert.deepEqual(splitPath('forward'), { parent: null, name: 'forward' });
    assert.deepEqual(splitPath('a\\/b'), { parent: null, name: 'a/b' });
    assert.deepEqual(splitPath('x/<\\/script>'), { parent: 'x', name: '</script>' });
    assert.deepEqual(splitPath('back\\\\/slash'), { parent: 'back\\\\', name: 'slash' });
    assert.deepEqual(splitPath('x/\\-'), { parent: 'x', name: '' });
  });
});

describe('names', () => {
  it('that would look alike show where they differ', () => {
    assert.deepEqual(shortenedApart(['a/x', 'b/x'], 20), ['a/x', 'b/x']);
    assert.deepEqual(shortenedApart(['train/gpt/layer 1/linear/allocate/malloc', 'train/gpt/layer 2/linear/allocate/malloc', 'c'], 20), ['\u2026layer 1\u2026cate/malloc', '\u2026layer 2\u2026cate/malloc', 'c']);
    const equal = shortenedApart(['step/with/a/long/path', 'step/with/a/long/path'], 12);
    assert.equal(equal[0], equal[1]);
  });

  it('of a stack keep the innermost frame, with its file and line', () => {
    const outer = 'main (main.cc:430)/train (main.cc:380)/fasttext::FastText::train (fasttext.cc:745)/';
    const inner = 'fasttext::Dictionary::Dictionary (dictionary.cc:28)';
    assert.equal(shortenedName(outer + inner, 80), `main (main.cc:430)/train (ma\u2026${inner}`);
    assert.equal(shortenedName(outer + inner, 54), `\u2026)/${inner}`);
    assert.equal(shortenedName(outer + inner, 36), '\u2026nary::Dictionary (dictionary.cc:28)');
    for (const length of [32, 42, 56, 80]) {
      assert.equal(shortenedName(outer + inner, length).length, length);
      const alike = shortenedApart(['a (fasttext.cc:761)', 'createTrainOutputMatrix (fasttext.cc:763)'].map((frame) => `${outer}${frame}/${inner}`), length);
      assert.notEqual(alike[0], alike[1]);
      for (const name of alike) assert.match(name, length < 40 ? /.cc:28\)$/ : /ary.cc:28\)$/);
    }
  });

  it('of a stack that ends in a library keep the innermost frame of the program', () => {
    const outer = '<module> (train.py:1)/main (train.py:300)/train_one_epoch (train.py:200)/';
    const own = 'forward (attention_with_a_long_name.py:77)';
    const library = '/at::native::_efficient_attention_cuda (attention.cu:700)/at::detail::empty_generic';
    assert.equal(shortenedName(outer + own + library, 60), `<module> (train.\u2026${own}\u2026`);
    assert.equal(shortenedName(`${outer}${own}/operator new`, 44), `\u2026${own}\u2026`);
    assert.match(shortenedName('at::native::empty_strided_cuda/c10::malloc', 24), /c10::malloc$/);
    const interpreter = '/PyNumber_Add/_PyType_GetText/PyDescr_IsData/torch::autograd::THPVariable_add (methods.cpp:0)';
    assert.equal(shortenedName(outer + own + interpreter + library, 44), `\u2026${own}\u2026`);
    assert.match(shortenedName(`${outer}PyTree_map (tree.py:7)/PyTree::map/at::empty`, 30), /PyTree::map/);
    assert.match(shortenedName(`${outer}PyTree_map (tree.py:7)/at::empty/c10::alloc`, 30), /PyTree_map \(tree\.py:7\)/);
    for (let length = 50; length < (outer + own + library).length; length += 1) {
      const name = shortenedName(outer + own + library, length);
      assert.ok(name.length <= length && name.includes(own), name);
    }
  });

  it('of any stacks fit and differ', () => {
    let seed = 11;
    const random = (most) => (seed = (seed * 48271) % 2147483647) % most;
    for (let round = 0; round < 200; round += 1) {
      const stacks = new Set();
      while (stacks.size < 8) {
        let stack = '__clone/thread_main';
        for (let depth = random(12); depth > 0; depth -= 1) stack += `/${'abcd'[random(4)].repeat(3 + random(3))}`;
        stacks.add(`${stack}/at::empty/c10::cuda::CachingAllocator::malloc (CUDACachingAllocator.cpp:0)`);
      }
      for (const length of [24, 36, 60]) {
        const shown = shortenedApart([...stacks], length);
        assert.equal(new Set(shown).size, stacks.size, shown.join('\n'));
        assert.ok(shown.every((name) => name.length <= length));
      }
    }
  });
});
