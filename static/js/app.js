// What every page has. Each module finds its elements by data attributes and listens on the
// document, so that fragments swapped in later need no wiring.
import "./log.js";
import "./theme.js";
import "./layers.js";
import "./toasts.js";
import "./copy.js";
import "./live.js";
import "./fields.js";
import "./selection.js";
import "./clock.js";
import "./rows.js";
import "./source.js";
import "./names.js";
import "./palette.js";
import "./keys.js";
