// The chat page. The server draws everything; these modules send, follow, open and point.
import "./chat/stream.js";
import "./chat/tools.js";
import "./chat/composer.js";
import "./chat/branches.js";
import "./chat/flags.js";
import "./chat/welcome.js";
import "./chat/scope.js";
import "./chat/prompts.js";
import "./chat/viewer.js";
import "./chat/menu.js";
import "./chat/list.js";
import "./chat/bulk.js";
import "./chat/diagrams.js";
