/** Which routes an app has. */

/** Each path in Fastify's picture of its routes: a tree, four characters of indentation for each step. */
export function pathsOf(tree: string): string[] {
  const stack: string[] = [];
  return tree.split('\n').flatMap((line) => {
    const [, indent = '', part = '', methods] = /^([│ ]*)[├└]── (\S*)(?: \((.*)\))?$/.exec(line) ?? [];
    if (part === '') return [];
    stack.length = indent.length / 4;
    stack.push(part);
    return methods === undefined ? [] : [stack.join('')];
  });
}
