// Exact search of packed codes, in the order of starshl's indexes: by distance, then by position.

/** Return the number of set bits of a 32-bit word. */
function popcount(word) {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

/** Return how many bits of each code differ from the query, leaving out those of the class field. */
function bitDistances(words, query, field) {
  const width = query.length;
  const distances = new Uint16Array(words.length / width);
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
  const plain = bitDistances(words, query, field);
  const end = endOfClass(plain, words, query, rule, field);
  const distances = new Uint32Array(plain.length);
  for (let item = 0, at = 0; item < plain.length; item++, at += query.length) {
    const differs = ((words[at] ^ query[0]) & field) !== 0;
    distances[item] = differs ? Math.max(plain[item] + rule.class_weight, end + 1) : plain[item];
  }
  return distances;
}

/**
 * Return the k nearest codes as {positions, distances}.
 * words: all codes, each as 32-bit words, little end first; query: the words of one code; rule: null for the Hamming
 * distance, or {class_bits, class_weight, class_first} of hybrid codes.
 */
function nearest(words, query, k, rule) {
  const all = rule === null ? bitDistances(words, query, 0) : classDistances(words, query, rule);
  let farthest = 0;
  for (let item = 0; item < all.length; item++) if (all[item] > farthest) farthest = all[item];
  const counts = new Uint32Array(farthest + 1);
  for (let item = 0; item < all.length; item++) counts[all[item]]++;
  let limit = 0; // the distance of the last result, of which only the first items fit
  let nearer = 0;
  while (limit < farthest && nearer + counts[limit] < k) nearer += counts[limit++];
  let room = Math.min(k, all.length) - nearer;
  const positions = [];
  for (let item = 0; item < all.length; item++)
    if (all[item] < limit || (all[item] === limit && room-- > 0)) positions.push(item);
  positions.sort((a, b) => all[a] - all[b] || a - b);
  return { positions, distances: positions.map((item) => all[item]) };
}

/** Return packed bytes of one code as 32-bit words. */
function wordsOf(bytes) {
  const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
  padded.set(bytes);
  return new Uint32Array(padded.buffer);
}
