/** Order of the UTF-8 bytes: as the code units, except that surrogates come after everything else. */
function rank(codeUnit: number): number {
  if (codeUnit < 0xd800) return codeUnit;
  return codeUnit < 0xe000 ? codeUnit + 0x2000 : codeUnit - 0x800;
}

export function compareText(left: string, right: string): number {
  return compareBy(rank, left, right);
}

/** Names compare segment by segment, so a segment's end comes before any character. */
export function compareNames(left: string, right: string): number {
  return compareBy(nameRank, left, right);
}

const slash = '/'.charCodeAt(0);
const nameRank = (codeUnit: number) => (codeUnit === slash ? -1 : rank(codeUnit));

function compareBy(order: (codeUnit: number) => number, left: string, right: string): number {
  if (left === right) return 0;
  const sharedLength = Math.min(left.length, right.length);
  for (let index = 0; index < sharedLength; index++) {
    const leftUnit = left.charCodeAt(index);
    const rightUnit = right.charCodeAt(index);
    if (leftUnit !== rightUnit) return order(leftUnit) - order(rightUnit);
  }
  return left.length - right.length;
}
