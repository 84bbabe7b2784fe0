// Exact search of packed codes, in the order of starshl's indexes: by distance, then by position.

/** Return the number of set bits of a 32-bit word. */
function popcount(word) {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

let memory = new Uint32Array(0); // of the last search: a new array for each would have to be collected

function reusedArray(length) {
  if (memory.length !== length) memory = new Uint32Array(length);
  return memory;
}

/** Return how many bits of each code differ from the query, leaving out those of the class field. */
function bitDistances(words, query, field) {
  const width = query.length;
  const distances = reusedArray(words.length / width);
  for (let item = 0, at = 0; item < distances.length; item++) {
    let differing = popcount((words[at] ^ query[0]) & ~field);
    at++;
    for (let word = 1; word < width; word++, at++) differing += popcount(words[at] ^ query[word]);
    distances[item] = differing;
  }
  return distances;
}

/** Return the distance of the last of the first items of the query's class; -1 if there is none or none must be. */
function endOfClass(distances, words, query, rule, field) {
  if (!rule.class_first) return -1;
  const counts = new Uint32Array(32 * query.length + 1);
  for (let item = 0, at = 0; item < distances.length; item++, at += query.length)
    if (((words[at] ^ query[0]) & field) === 0) counts[distances[item]]++;
  let left = rule.class_first;
  let last = -1;
  for (let distance = 0; distance < counts.length && left > 0; distance++) {
    if (counts[distance] > 0) last = distance;
    left -= counts[distance];
  }
  return last;
}

/** Return distances with what another class costs: its weight, and at least one bit more than the first of the class. */
function classDistances(words, query, rule) {
  const field = (1 << rule.class_bits) - 1;
  const distances = bitDistances(words, query, field);
  const end = endOfClass(distances, words, query, rule, field);
  for (let item = 0, at = 0; item < distances.length; item++, at += query.length)
    if (((words[at] ^ query[0]) & field) !== 0)
      distances[item] = Math.max(distances[item] + rule.class_weight, end + 1);
  return distances;
}

// One loop per function: engines compile functions with several loops again at the end of each loop.

function largest(distances) {
  let farthest = 0;
  for (let item = 0; item < distances.length; item++) farthest = Math.max(farthest, distances[item]);
  return farthest;
}

/** Return how many items there are at each distance. */
function countsOf(distances, farthest) {
  const counts = new Uint32Array(farthest + 1);
  for (let item = 0; item < distances.length; item++) counts[distances[item]]++;
  return counts;
}

/** Return the positions of all items nearer than a limit, and of the first ones at the limit, n in all. */
function positionsWithin(distances, limit, nAtLimit, n) {
  const positions = new Uint32Array(n);
  let [found, left] = [0, nAtLimit];
  for (let item = 0; item < distances.length && found < n; item++)
    if (distances[item] < limit || (distances[item] === limit && left-- > 0)) positions[found++] = item;
  return positions;
}

/**
 * Return the k nearest codes as {positions, distances}.
 * words: all codes, each as 32-bit words, little end first; query: the words of one code; rule: null for the Hamming
 * distance, or {class_bits, class_weight, class_first} of hybrid codes.
 */
function nearest(words, query, k, rule) {
  const all = rule === null ? bitDistances(words, query, 0) : classDistances(words, query, rule);
  const farthest = largest(all);
  const counts = countsOf(all, farthest);
  let limit = 0; // the distance of the last result, of which only the first items fit
  let nearer = 0;
  while (limit < farthest && nearer + counts[limit] < k) nearer += counts[limit++];
  const n = Math.min(k, all.length);
  const positions = Array.from(positionsWithin(all, limit, n - nearer, n)).sort((a, b) => all[a] - all[b] || a - b);
  return { positions, distances: positions.map((item) => all[item]) };
}

/** Return packed bytes of one code as 32-bit words. */
function wordsOf(bytes) {
  const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
  padded.set(bytes);
  return new Uint32Array(padded.buffer);
}
