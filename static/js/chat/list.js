// The list of conversations. All that asks for a new one goes through its filter's form, which asks
// one at a time: an answer that comes late never takes the place of a newer one.
const filter = document.getElementById("convo-filter");
const refresh = () => htmx.trigger(filter, "refresh");

document.addEventListener("click", (event) => {
  const more = event.target.closest("[data-load-more]");
  if (more) filter.elements.n.value = more.dataset.loadMore;
  if (more || event.target.closest("[data-refresh]")) refresh();
});

// The socket's word that some conversation has changed.
document.addEventListener("htmx:oobBeforeSwap", (event) => event.detail.target.id === "pulse" && refresh());

// The tags come with each list. A choice that is open stays so unless they have changed.
document.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.id === "tag-filter" && target.innerHTML === fragment.innerHTML) event.preventDefault();
});

// The open conversation is in the list, however far down; what is not shown yet is scrolled to.
document.querySelector("#convos [aria-current=page]")?.scrollIntoView({ block: "nearest" });

// A list that is only brought up to date stays where it was scrolled to.
let top = 0;
document.addEventListener("htmx:beforeSwap", ({ detail: { target, requestConfig } }) => {
  if (target.id === "convos") top = requestConfig.triggeringEvent.type === "refresh" ? target.scrollTop : 0;
});

// Each new list says whether the database is away, and so does the banner then.
let list = document.getElementById("convos");
document.addEventListener("htmx:afterSettle", () => {
  const banner = document.getElementById("history-away");
  const now = document.getElementById("convos");
  if (now === list) return;
  list = now;
  list.scrollTop = top;
  if (banner) banner.hidden = !("away" in list.dataset);
});
