import { type Book as AnyBook, createBook as createAnyBook } from '../book.ts';
import type { Cell } from './cells.ts';
import { judge, repeatsIn } from './judge.ts';
import type { Sink } from './sink.ts';

export type Book = AnyBook<Cell>;

export const createBook = (sink: Sink): Book =>
  createAnyBook({
    judge: (cell) => judge(cell, sink.begins(cell.cell), sink.overlaps(cell.cell)),
    effects: ({ cell }) => sink.begins(cell).length,
    repeats: ({ cell }) => repeatsIn(sink.begins(cell)),
  });
