import fc from 'fast-check';
import protobuf from 'protobufjs';

/**
 * What a field may hold that the service knows, by its name or by `Type.name`; under `''` for any text. A field that is named here,
 * itself or by its oneof, is nearly always there, or few requests would come past the first check.
 */
export type Plausible = Readonly<Record<string, readonly string[]>>;

type Message = Readonly<Record<string, unknown>>;

const deepest = 5;
const extremes = [0, -1, 1, 2 ** 31 - 1, -(2 ** 31)];
/** Around the limits that the services document. */
const documented = [4, 5, 9, 10, 15, 60, 100, 101, 600, 601, 1_000, 1_001, 86_400, 999_999_999, 1_000_000_000];
const extremeLongs = ['0', '-1', '9223372036854775807', '-9223372036854775808', '253402300799', '253402300800', '-62135596801'];
const oddTexts = ['', '/', '//', '.', '..', '*', '-', '`', '"', '__x__', '__proto__', 'constructor', '\u0000', 'a'.repeat(2_000)];

const unsigned = fc.constantFrom(0, 1, 10, 600, 2 ** 31, 2 ** 32 - 1);
const signed = fc.oneof(
  fc.constantFrom(...documented),
  fc.constantFrom(...extremes),
  fc.maxSafeInteger().map((value) => value | 0),
);
const long = fc.oneof(
  fc.constantFrom(...documented).map(String),
  fc.constantFrom(...extremeLongs),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
);
const unsignedLong = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
const oddText = fc.oneof(fc.constantFrom(...oddTexts), fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 20 }));

const often = <T>(likely: fc.Arbitrary<T>, odd: fc.Arbitrary<T>, weight = 19): fc.Arbitrary<T> =>
  fc.oneof({ weight, arbitrary: likely }, { weight: 1, arbitrary: odd });

/** Requests of a type as the wire can carry them: any field may be absent, at its limits, absurd, or about something real. */
export function arbitraryRequest(type: protobuf.Type, plausible: Plausible): fc.Arbitrary<Message> {
  const made = new Map<string, fc.Arbitrary<Message>>();
  const hintsFor = ({ name, parent }: protobuf.Field) => plausible[`${parent?.name}.${name}`] ?? plausible[name];
  const isLikely = (field: protobuf.Field) => Boolean(hintsFor(field) ?? (field.partOf && plausible[field.partOf.name]));

  const text = (hints = plausible[''] ?? []): fc.Arbitrary<string> =>
    hints.length === 0 ? oddText : often(fc.constantFrom(...hints), oddText);
  const scalar = (kind: string, hints: readonly string[] | undefined): fc.Arbitrary<unknown> => {
    if (kind === 'string') return text(hints);
    if (kind === 'bytes') return often(text(hints).map(Buffer.from), fc.uint8Array({ maxLength: 30 }).map(Buffer.from), 2);
    if (kind === 'bool') return fc.boolean();
    if (kind === 'double' || kind === 'float') return fc.oneof(fc.double(), fc.constantFrom(0, 1, 500, 501));
    if (kind === 'uint64' || kind === 'fixed64') return unsignedLong;
    if (kind.endsWith('64')) return long;
    return kind === 'uint32' || kind === 'fixed32' ? unsigned : signed;
  };
  const single = (field: protobuf.Field, depth: number): fc.Arbitrary<unknown> => {
    const { resolvedType, type: kind } = field;
    if (resolvedType instanceof protobuf.Enum) return often(fc.constantFrom(...Object.values(resolvedType.values)), signed);
    return resolvedType ? message(resolvedType, depth - 1) : scalar(kind, hintsFor(field));
  };
  const value = (field: protobuf.Field, depth: number): fc.Arbitrary<unknown> => {
    const one = single(field, depth);
    if (field instanceof protobuf.MapField) return fc.dictionary(text(plausible[`${field.name}.key`]), one, { maxKeys: 3 });
    return field.repeated ? often(fc.array(one, { minLength: 1, maxLength: 1 }), fc.array(one, { maxLength: 3 }), 2) : one;
  };
  const optional = (field: protobuf.Field, depth: number): fc.Arbitrary<Message> => {
    const present = value(field, depth).map((held): Message => ({ [field.name]: held }));
    const absent = fc.constant<Message>({});
    return isLikely(field) ? often(present, absent) : often(absent, present, 7);
  };
  /** At most one member of a oneof. */
  const message = (of: protobuf.Type, depth: number): fc.Arbitrary<Message> => {
    const key = `${of.fullName} ${depth}`;
    const known = made.get(key);
    if (known) return known;
    const fields = of.fieldsArray
      .map((field) => field.resolve())
      .filter(({ resolvedType }) => depth > 0 || !(resolvedType instanceof protobuf.Type));
    const alone = fields.filter(({ partOf }) => !partOf).map((field) => optional(field, depth));
    const choices = of.oneofsArray.map((oneof) => fields.filter(({ partOf }) => partOf === oneof)).filter(({ length }) => length > 0);
    const chosen = choices.map((members) => fc.oneof(...members.map((field) => optional(field, depth))));
    const whole = fc.tuple(...alone, ...chosen).map((parts): Message => Object.assign({}, ...parts));
    made.set(key, whole);
    return whole;
  };
  return message(type, deepest);
}
