// Which physical partitions there were at a moment of the past: those of now, and those that splits and merges replaced.
export function madeAt(part, history) {
  if (part.madeAt) return Date.parse(part.madeAt);
  const parents = history.filter((each) => each.children?.includes(part.id));
  return parents.length ? Math.max(...parents.map((each) => Date.parse(each.retiredAt))) : -Infinity;
}
export function partitionsAt({ partitions, history }, at) {
  const old = history.filter((each) => Date.parse(each.madeAt) <= at && at < Date.parse(each.retiredAt));
  const now = partitions.filter((each) => madeAt(each, history) <= at);
  return [...old, ...now].sort((a, b) => a.space[0] - b.space[0]);
}
// The moments at which the map became another one, the newest first.
export const retirements = (history) =>
  [...new Set(history.map((each) => Date.parse(each.retiredAt)))].sort((a, b) => b - a).slice(0, 6);
