// Builds the page: dist/template.html to look at, and the C++ files that memprof writes pages from and draws pictures with.
//   node build.mjs                      all
//   node build.mjs --check              fails if a committed file is not what the sources give
//   node build.mjs ... --into FOLDER    the folder of the C++ files, where the sources do not lie in the project
import { build, transform } from 'esbuild';
import { createHash } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const option = process.argv.indexOf('--into');
const folder = option > 0 ? process.argv[option + 1] : join(here, '../toolkit/page');
/** MSVC ends at 16,380 bytes a literal. */
const longestPiece = 15_000;
const delimiter = 'memprof';

const sha256 = (text) => `'sha256-${createHash('sha256').update(text, 'utf8').digest('base64')}'`;

async function script() {
  const result = await build({
    absWorkingDir: here,
    entryPoints: ['src/main.ts'],
    bundle: true,
    format: 'iife',
    target: 'es2022',
    charset: 'ascii',
    minify: true,
    legalComments: 'none',
    write: false,
  });
  return result.outputFiles[0].text.trim();
}

async function style() {
  const result = await transform(await readFile(join(here, 'src/style.css'), 'utf8'), { loader: 'css', minify: true, charset: 'ascii', target: 'es2022' });
  return result.code.trim();
}

/** The page before and after its data. */
export async function template() {
  const [js, css] = await Promise.all([script(), style()]);
  if (/<\/script|<!--/i.test(js) || /<\/style/i.test(css)) throw new Error('the script or style would end its own element');
  const policy = `default-src 'none'; script-src ${sha256(js)}; style-src ${sha256(css)}; base-uri 'none'; form-action 'none'`;
  const head =
    `<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<meta name="generator" content="memprof">\n` +
    `<meta http-equiv="Content-Security-Policy" content="${policy}">\n` +
    `<meta name="viewport" content="width=device-width, initial-scale=1">\n<meta name="color-scheme" content="light dark">\n` +
    `<title>memprof</title>\n<style>${css}</style>\n</head>\n<body>\n` +
    `<noscript><p>This page needs JavaScript, which it contains; it loads nothing. <code>memprof show</code> prints the same answers as text.</p></noscript>\n` +
    `<p id="loading">Reading the report.</p>\n`;
  const tail = `<script>${js}</script>\n</body>\n</html>\n`;
  for (const part of [head, tail]) if (/[^\x00-\x7f]/.test(part)) throw new Error('the template has to be ASCII');
  return { head, tail, sizes: { script: js.length, style: css.length } };
}

function literals(text) {
  if (text.includes(`)${delimiter}"`)) throw new Error('the template contains the delimiter of its raw strings');
  const pieces = [];
  for (let at = 0; at < text.length; at += longestPiece) pieces.push(`    R"${delimiter}(${text.slice(at, at + longestPiece)})${delimiter}",`);
  return pieces.join('\n');
}

/** The colours of pictures: the light ones. */
function paletteOf({ categories, rest, plain }) {
  const cases = Object.entries(categories).map(([name, [light]]) => `    case category::${name}: return "${light}";`);
  return `#pragma once

#include <memprof/trace/category.hpp>

// Made by viewer/build.mjs from viewer/src/palette.json: change it there.

#include <string_view>

/// @file
/// The colours of pages in light colours, for pictures. Those of categories are by Okabe and Ito, "Color Universal Design"
/// (2008).

namespace memprof::inline MEMPROF_ABI::detail {

inline constexpr std::string_view rest_colour = "${rest[0]}";
inline constexpr std::string_view plain_colour = "${plain[0]}";  ///< of bars whose names say what they are

[[nodiscard]] constexpr std::string_view colour_of(category of) noexcept {
  // clang-format off
  switch (of) {
${cases.join('\n')}
  }
  // clang-format on
  return rest_colour;
}

}  // namespace memprof::inline MEMPROF_ABI::detail
`;
}

function sourceOf({ head, tail }) {
  return `#include <memprof/config.hpp>
#include <memprof/toolkit/page/page_template.hpp>

// Made by viewer/build.mjs from viewer/src: change it there.

#include <span>
#include <string_view>

namespace memprof::inline MEMPROF_ABI::detail {

namespace {

// clang-format off
constexpr std::string_view head_parts[] = {
${literals(head)}
};

constexpr std::string_view tail_parts[] = {
${literals(tail)}
};
// clang-format on

}  // namespace

std::span<const std::string_view> page_head() noexcept { return head_parts; }

std::span<const std::string_view> page_tail() noexcept { return tail_parts; }

}  // namespace memprof::inline MEMPROF_ABI::detail
`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const made = await template();
  const palette = JSON.parse(await readFile(join(here, 'src/palette.json'), 'utf8'));
  const files = [[join(folder, 'page_template.cpp'), sourceOf(made)], [join(folder, 'palette.hpp'), paletteOf(palette)]];
  if (process.argv.includes('--check')) {
    for (const [file, text] of files) {
      if ((await readFile(file, 'utf8').catch(() => '')) === text) continue;
      console.error(`${relative(process.cwd(), file)} is not what viewer/src gives: run 'npm run build' in viewer/ and commit it`);
      process.exitCode = 1;
    }
  } else {
    await mkdir(join(here, 'dist'), { recursive: true });
    await writeFile(join(here, 'dist/template.html'), made.head + made.tail);
    for (const [file, text] of files) await writeFile(file, text);
    console.log(`script ${made.sizes.script} bytes, style ${made.sizes.style} bytes`);
  }
}
