/**
 * Paths of operations: names separated by slashes, in which slashes and backslashes within a name are escaped by a backslash
 * (profile/operation_path.hpp).
 */

/** The path without its last name (null if it has only one), and that name as the program gave it. */
export function splitPath(path: string): { parent: string | null; name: string } {
  let cut = -1;
  for (let at = 0; at < path.length; at += 1) {
    if (path[at] === '\\') at += 1;
    else if (path[at] === '/') cut = at;
  }
  return { parent: cut < 0 ? null : path.slice(0, cut), name: nameOf(path.slice(cut + 1)) };
}

function nameOf(escaped: string): string {
  if (escaped === '\\-') return '';
  return escaped.replace(/\\([\\/])/g, '$1');
}
