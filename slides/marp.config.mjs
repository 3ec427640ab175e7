// How Marp turns slides/*.md into decks that need no network: mathematics drawn into the page, no emoji from elsewhere.
export default {
  allowLocalFiles: true,
  html: true,
  theme: "manyhands",
  themeSet: ["theme.css"],
  options: { math: "mathjax", emoji: { shortcode: false, unicode: false } },
};
