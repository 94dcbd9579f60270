package html

import (
	"fmt"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/words"
)

const (
	// maxItems bounds the texts of all items of a page, in bytes.
	maxItems = 1 << 20
	// maxSteps bounds the list of what to do, and maxCommands the commands of an item.
	maxSteps, maxCommands = 50, 20
)

// items are sections of the items, each group under its heading, after a list that links to those that count.
func (w *writer) items(items document.Items, level int) g.Node {
	content, steps := g.Group{}, g.Group{}
	for first := 0; first < len(items.Entries); {
		group, members := items.Entries[first].Group, g.Group{}
		below := level
		if group != "" {
			below++
		}
		for ; first < len(items.Entries) && items.Entries[first].Group == group; first++ {
			each := items.Entries[first]
			if !w.fits(each) {
				continue
			}
			members = append(members, w.item(each, below))
			if each.Counts {
				steps = append(steps, w.step(each))
			}
		}
		switch {
		case len(members) == 0:
		case group == "":
			content = append(content, members)
		default:
			content = append(content, section(group, document.Mark{}, "", level, members))
		}
	}
	return g.Group{todo(items.Lead, steps, level), content, more(items.More, "entries")}
}

// todo is a list of steps after a lead; nothing without either.
func todo(lead string, steps g.Group, level int) g.Node {
	if lead == "" || len(steps) == 0 {
		return nil
	}
	shown := steps[:min(len(steps), maxSteps)]
	return section("What to do", document.Mark{}, "", level, g.Group{
		line(h.P(text(lead))), line(h.Ol(line(), shown)),
		g.If(len(steps) > len(shown), line(h.P(g.Textf("And %d more, below.", len(steps)-len(shown))))),
	})
}

// step is a link to the item that was written last.
func (w *writer) step(item document.Item) g.Node {
	name, text := strings.Join(item.Names, ", "), item.Remedy
	if text == "" {
		text = item.Message
	}
	return line(h.Li(h.A(h.Href("#"+w.anchor()), g.Text(words.Line(name, maxLine))), g.If(text != "", g.Text(": ")), lines(text)))
}

// anchor is the ID of the item that was written last.
func (w *writer) anchor() string { return fmt.Sprintf("f%d", w.anchors) }

func (w *writer) item(item document.Item, level int) g.Node {
	w.anchors++
	title := strings.Join(item.Names, ", ")
	if item.Number > 0 {
		title = fmt.Sprintf("%d. %s", item.Number, title)
	}
	content := g.Group{prose("", item.Message), prose("Fix:", item.Remedy)}
	for _, each := range item.Commands[:min(len(item.Commands), maxCommands)] {
		content = append(content, command(each))
	}
	for _, fact := range item.Facts {
		content = append(content, prose(fact.Lead, fact.Text))
	}
	mark := document.Mark{Level: item.Mark.Level, Word: item.Mark.Word + " " + item.State}
	return section(title, mark, w.anchor(), level, append(content, table(item.Evidence)))
}

func (w *writer) fits(item document.Item) bool {
	size := 512 + len(item.Message) + len(item.Remedy) + len(item.State)
	for _, each := range item.Names {
		size += len(each)
	}
	for _, each := range item.Commands {
		size += len(each.Lead) + len(each.Text)
	}
	for _, fact := range item.Facts {
		size += len(fact.Text)
	}
	for _, row := range item.Evidence.Rows {
		size += len(row[0]) + len(row[1])
	}
	if w.size+size > maxItems {
		w.omitted++
		return false
	}
	w.size += size
	return true
}

// left states how many items had no room.
func (w *writer) left() g.Node { return more(w.omitted, "findings") }
