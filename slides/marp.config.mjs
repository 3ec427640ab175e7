// How Marp turns slides/*.md into decks that need no network: mathematics drawn into the page, no emoji from elsewhere.

// A formula is a drawing: its TeX stands beside it for those who cannot see it.
const spoken = md => {
  for (const [rule, tag] of [["marp_math_inline", "span"], ["marp_math_block", "div"]]) {
    const draw = md.renderer.rules[rule];
    md.renderer.rules[rule] = (tokens, i, ...rest) =>
      `<${tag} role="math" aria-label="${md.utils.escapeHtml(tokens[i].content.trim())}">${draw(tokens, i, ...rest)}</${tag}>`;
  }
};

export default {
  allowLocalFiles: true,
  html: true,
  lang: "en",
  theme: "manyhands",
  themeSet: ["theme.css"],
  engine: ({ marp }) => marp.use(spoken),
  options: { math: "mathjax", emoji: { shortcode: false, unicode: false }, lang: "en" },
};
