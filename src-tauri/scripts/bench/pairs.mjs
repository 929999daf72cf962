// Statistics of alternating pairs.

/** Middle of a list of numbers. */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/**
 * Rank (from 1) of the ordered ratio that bounds the median from below: the largest k for which
 * P(Binomial(n, 1/2) < k) <= 0.025. 30 pairs give the 10th smallest, 60 the 22nd.
 */
export function lowerRank(n) {
  let probability = 2 ** -n;
  let below = 0;
  for (let k = 0; k <= n; k += 1) {
    if (below + probability > 0.025) return k;
    below += probability;
    probability *= (n - k) / (k + 1);
  }
  return n;
}

/** Median of the ratios and its lower bound; no bound where there are too few pairs for one. */
export function judge(ratios) {
  const rank = lowerRank(ratios.length);
  const sorted = [...ratios].sort((a, b) => a - b);
  return { median: median(ratios), lower: rank > 0 ? sorted[rank - 1] : null, pairs: ratios.length };
}
