// The table behind a chart: made when it is opened, by text alone.
function fillTable(holder, name, { columns, rows }) {
  const table = document.createElement("table");
  const caption = table.createCaption();
  caption.textContent = `${name}: ${rows.length} rows`;
  const head = table.createTHead().insertRow();
  for (const column of columns) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = column;
    head.append(cell);
  }
  const body = table.createTBody();
  for (const row of rows) {
    const line = body.insertRow();
    row.forEach((value, at) => {
      const cell = document.createElement(at === 0 ? "th" : "td");
      if (at === 0) cell.scope = "row";
      cell.textContent = value;
      line.append(cell);
    });
  }
  holder.tabIndex = 0;
  holder.setAttribute("role", "region");
  holder.setAttribute("aria-label", `${name}: table`);
  const { scrollTop, scrollLeft } = holder;
  holder.replaceChildren(table);
  holder.scrollTo(scrollLeft, scrollTop);
}
