// Exact search of packed codes, in the order of starshl's indexes: by distance, then by position.

/** Return the number of set bits of a 32-bit word. */
function popcount(word) {
  word -= (word >>> 1) & 0x55555555;
  word = (word & 0x33333333) + ((word >>> 2) & 0x33333333);
  return Math.imul((word + (word >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

const LEAST_SHARE = 1e-6; // a class of the query below it adds nothing that matters
const LEAST_PROBABILITY = 1e-6; // and a smaller probability costs no more
const BEYOND_SATURATION = 0.05;

let memory = new Float64Array(0); // of the last search: a new array for each would have to be collected

function reusedArray(length) {
  if (memory.length !== length) memory = new Float64Array(length);
  return memory;
}

/** Return how many bits of each code differ from the query, leaving out the first ones. */
function bitDistances(words, query, nSkipped) {
  const width = query.length;
  const kept = Uint32Array.from(query, (_, word) => bitsFrom(nSkipped - 32 * word));
  const distances = reusedArray(words.length / width);
  for (let item = 0, at = 0; item < distances.length; item++) {
    let differing = 0;
    for (let word = 0; word < width; word++, at++) differing += popcount((words[at] ^ query[word]) & kept[word]);
    distances[item] = differing;
  }
  return distances;
}

/** Return a word whose bits are set from one on. */
function bitsFrom(first) {
  return first <= 0 ? 0xffffffff : first >= 32 ? 0 : (0xffffffff << first) >>> 0;
}

const clipped = (probability) => Math.min(Math.max(probability, 0), 1);

/**
 * The words at the beginning of all codes, which stand for probabilities of classes.
 * rule.entries: probabilities by class of every word of a dictionary, a number that the first rule.class_bits hold; or
 * null, and rule.codewords are words of the classes, rule.decay what each bit of difference leaves of a probability,
 * and rule.labels the class of each item whose code follows from a label, -1 for others.
 */
class ClassWords {
  constructor(words, width, rule) {
    Object.assign(this, { words, width, rule, nItems: words.length / width });
    this.groups = Int32Array.from(rule.groups);
    if (rule.entries === null) this.readWords();
  }

  get nClasses() {
    return this.groups.length;
  }

  get nEntries() {
    return this.rule.entries.length / this.nClasses;
  }

  /** Return the number of a dictionary's entry that a code begins with. */
  numberAt(item) {
    return Math.min(this.words[item * this.width] & ((1 << this.rule.class_bits) - 1), this.nEntries - 1);
  }

  distance(item, class_) {
    let differing = 0;
    for (let word = 0; word < this.width; word++)
      differing += popcount(this.words[item * this.width + word] ^ this.rule.codewords[class_ * this.width + word]);
    return differing;
  }

  /** Remember how near the nearest codeword of each item is, and what its probabilities sum to. */
  readWords() {
    this.nearest = new Int16Array(this.nItems);
    this.sums = new Float64Array(this.nItems);
    const distances = new Int16Array(this.nClasses);
    for (let item = 0; item < this.nItems; item++) {
      for (let class_ = 0; class_ < this.nClasses; class_++) distances[class_] = this.distance(item, class_);
      this.nearest[item] = distances.reduce((one, other) => Math.min(one, other));
      for (const distance of distances) this.sums[item] += this.rule.decay[distance - this.nearest[item]];
    }
  }

  /** Return what the word of an item says of its class, as the posterior of a query. */
  posteriorOf(item) {
    const posterior = new Float64Array(this.nClasses);
    if (this.rule.entries !== null) {
      const number = this.numberAt(item);
      return posterior.map((_, class_) => this.rule.entries[class_ * this.nEntries + number]);
    }
    const label = this.rule.labels[item];
    if (label >= 0) posterior[label] = 1;
    else
      for (let class_ = 0; class_ < this.nClasses; class_++)
        posterior[class_] = Math.fround(this.rule.decay[this.distance(item, class_) - this.nearest[item]] / this.sums[item]);
    return posterior;
  }

  /** Return a posterior to which merged classes are one class, and removed ones none; it sums to 1 over the others. */
  pooled(posterior) {
    if (this.groups.every((group, class_) => group === class_)) return posterior;
    const sums = new Float64Array(this.nClasses);
    this.groups.forEach((group, class_) => group >= 0 && (sums[group] += posterior[class_]));
    const total = sums.reduce((one, other) => one + other);
    const nGroups = new Set(this.groups.filter((group) => group >= 0)).size;
    const shares = sums.map((sum) => (total > 0 ? sum / total : 1 / nGroups));
    return Float64Array.from(this.groups, (group) => (group >= 0 ? Math.fround(shares[group]) : 0));
  }

  /** Return a function from items to the probability that they are of the query's class. */
  probabilities(posterior) {
    const pooled = this.pooled(posterior);
    const likely = [...pooled.keys()].filter((class_) => pooled[class_] >= LEAST_SHARE);
    if (this.rule.entries === null) {
      return (item) => {
        const label = this.rule.labels[item];
        if (label >= 0) return clipped(pooled[label]);
        let sum = 0;
        for (const class_ of likely) sum += pooled[class_] * this.rule.decay[this.distance(item, class_) - this.nearest[item]];
        return clipped(sum / this.sums[item]);
      };
    }
    const table = new Float64Array(this.nEntries);
    for (const class_ of likely)
      for (let number = 0; number < table.length; number++)
        table[number] += pooled[class_] * this.rule.entries[class_ * table.length + number];
    if (this.rule.has_labels) table.set(pooled);
    return (item) => clipped(table[this.numberAt(item)]);
  }
}

/** Add to distances of neighbors, in place, what the class costs; items that are not likely enough come to nowhere. */
function addClasses(distances, probabilityOf, rule, least) {
  for (let item = 0; item < distances.length; item++) {
    const [near, probability] = [distances[item], probabilityOf(item)];
    const saturated = Math.min(near, rule.saturation) + BEYOND_SATURATION * Math.max(near - rule.saturation, 0);
    const cost = -rule.weight * Math.log(Math.max(probability, LEAST_PROBABILITY));
    distances[item] = probability < least ? Infinity : saturated + cost;
  }
}

/** Return the positions of the k smallest finite numbers, equal ones by position. */
function smallest(distances, k) {
  const positions = [];
  let worst = Infinity;
  for (let item = 0; item < distances.length; item++) {
    const distance = distances[item];
    if (distance >= worst) continue;
    let place = positions.length;
    while (place > 0 && distances[positions[place - 1]] > distance) place--;
    positions.splice(place, 0, item);
    if (positions.length > k) positions.pop();
    if (positions.length === k) worst = distances[positions[k - 1]];
  }
  return positions;
}

/**
 * Return the k nearest codes as {positions, distances, probabilities}.
 * words: all codes, each as 32-bit words, little end first; query: {code, posterior}, the words of one code and how
 * likely each class is, of which one may be null if it is not compared; classWords: null for the Hamming distance; least:
 * how likely items must be.
 */
function nearest(words, query, k, classWords, least = 0) {
  if (classWords === null) {
    const all = bitDistances(words, query.code, 0);
    const positions = smallest(all, k);
    return { positions, distances: positions.map((item) => all[item]), probabilities: null };
  }
  const { rule, nItems } = classWords;
  const all = rule.has_neighbors ? bitDistances(words, query.code, rule.class_bits) : reusedArray(nItems).fill(0);
  const probabilityOf = classWords.probabilities(query.posterior);
  addClasses(all, probabilityOf, rule, least);
  const positions = smallest(all, k);
  const probabilities = rule.shows_probabilities ? positions.map(probabilityOf) : null;
  return { positions, distances: positions.map((item) => all[item]), probabilities };
}

/** Return packed bytes of one code as 32-bit words. */
function wordsOf(bytes) {
  const padded = new Uint8Array(4 * Math.ceil(bytes.length / 4));
  padded.set(bytes);
  return new Uint32Array(padded.buffer);
}
