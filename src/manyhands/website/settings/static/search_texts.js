/* Written anew when the site is built: the texts of its pages. */
