import { printTable } from '../../../bench/measure/figures.ts';
import type { Cell } from './cells.ts';
import { inboxStops, type Setup, twoTierStops } from './plan.ts';

type Finding = { readonly cell: Cell; readonly kind: 'lost' | 'repeated'; readonly text: string };

/** What was seen of each cell, and what of it is not as expected. */
export type Book = {
  lost(cell: Cell, text: string): void;
  repeated(cell: Cell, text: string): void;
  /** How often the cell had its effect. */
  seen(cell: Cell, effects: number): void;
  findings(): readonly Finding[];
  /** How many cells are broken, those of controls apart. */
  broken(): { readonly lost: number; readonly repeated: number };
  print(): void;
};

export function createBook(): Book {
  const effectsOf = new Map<Cell, number>();
  const findings: Finding[] = [];
  const add = (kind: Finding['kind']) => (cell: Cell, text: string) => void findings.push({ cell, kind, text });
  const [lost, repeated] = [add('lost'), add('repeated')];
  const shown = (cell: Cell): string => {
    const isBroken = findings.some((finding) => finding.cell === cell);
    return `${effectsOf.get(cell)}${cell.effects > 1 ? ' (documented)' : ''}${isBroken ? ` BROKEN, expected ${cell.effects}` : ''}`;
  };
  return {
    lost,
    repeated,
    seen(cell, effects) {
      effectsOf.set(cell, effects);
      const text = `expected ${cell.effects} effects, seen ${effects}`;
      if (effects < cell.effects) lost(cell, text);
      if (effects > cell.effects) repeated(cell, text);
    },
    findings: () => findings,
    broken() {
      const count = (kind: Finding['kind']) =>
        new Set(findings.filter((each) => each.kind === kind && each.cell.without === 'nothing').map(({ cell }) => cell)).size;
      return { lost: count('lost'), repeated: count('repeated') };
    },
    print() {
      const cells = [...effectsOf.keys()].filter(({ without }) => without === 'nothing');
      const setups: readonly Setup[] = [...new Set(cells.map(({ setup }) => setup))];
      const order: readonly string[] = [...new Set([...twoTierStops, ...inboxStops])];
      const situations = [...new Set([...order, ...cells.map(({ situation }) => situation)])];
      for (const part of [setups.filter((setup) => !setup.includes(' ')), setups.filter((setup) => setup.includes(' '))]) {
        const rows = situations.map((situation) => [
          situation,
          ...part.map((setup) => {
            const cell = cells.find((each) => each.setup === setup && each.situation === situation);
            return cell ? shown(cell) : '';
          }),
        ]);
        if (part.length > 0) printTable([['effects', ...part], ...rows.filter((row) => row.slice(1).some((text) => text !== ''))]);
      }
      for (const { cell, kind, text } of findings) if (cell.without === 'nothing') console.log(`broken (${kind}): ${cell.cell}: ${text}`);
    },
  };
}
