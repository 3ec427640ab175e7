/* Written anew when the site is built: the entries of the glossary. */
