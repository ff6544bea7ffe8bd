import type { FieldPath } from './paths.ts';
import { type Fields, mapOf, type Value } from './values.ts';

/** Field names are the user's, so `constructor` must not find what every object inherits. */
function own(fields: Fields, name: string): Value | undefined {
  return Object.hasOwn(fields, name) ? fields[name] : undefined;
}

export function fieldAt(fields: Fields, path: FieldPath): Value | undefined {
  let value: Value | undefined;
  let inner: Fields | undefined = fields;
  for (const segment of path) {
    value = inner && own(inner, segment);
    inner = value?.valueType === 'mapValue' ? value.mapValue.fields : undefined;
  }
  return value;
}

/** The fields with one value put at a path, or taken away; what stands in the way of a path is replaced by a map. */
export function withField(fields: Fields, path: FieldPath, value: Value | undefined): Fields {
  const [name = '', ...rest] = path;
  if (rest.length === 0) {
    if (value) return { ...fields, [name]: value };
    const { [name]: _taken, ...kept } = fields;
    return kept;
  }
  const child = own(fields, name);
  if (child?.valueType === 'mapValue') return { ...fields, [name]: mapOf(withField(child.mapValue.fields, rest, value)) };
  return value ? { ...fields, [name]: mapOf(withField({}, rest, value)) } : fields;
}

/** Only the fields at these paths. */
export function projected(fields: Fields, paths: readonly FieldPath[]): Fields {
  let picked: Fields = {};
  for (const path of paths) {
    const value = fieldAt(fields, path);
    if (value) picked = withField(picked, path, value);
  }
  return picked;
}
