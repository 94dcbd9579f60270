package planview

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/openshift/update-preflight/collector/document"
	"github.com/openshift/update-preflight/collector/document/findingview"
	"github.com/openshift/update-preflight/collector/document/picture"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/updateplan"
	"github.com/openshift/update-preflight/collector/words"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

const (
	// maxName bounds a name in a line of the drawing, in bytes.
	maxName = 64
	// mostPools and mostNames bound lists of names.
	mostPools, mostNames = 20, 200
)

func name(text string) string { return words.Line(text, maxName) }

// path is the picture of the path, and what to do about the pools.
func (p Plan) path() []document.Block {
	route := picture.Route{Title: "Path from " + p.From + " to " + p.To, Stops: p.Versions(), Text: p.draw()}
	route.Table = document.Table{
		Title:   "Updates of the path",
		Columns: []string{"Update", "Kind", "Channel", "Control plane", "Unpause before", "Risks and gates"},
	}
	for _, each := range p.Updates {
		found := marks(each)
		route.Hops = append(route.Hops, picture.Hop{Text: each.Kind + ", " + each.Channel, Detail: each.ControlPlane.String(), Marks: found})
		route.Table.Rows = append(route.Table.Rows, []string{
			each.From + " to " + each.To, each.Kind, each.Channel, each.ControlPlane.String(), words.List(each.Unpause, mostNames), results(found),
		})
	}
	for _, each := range p.Alternatives {
		title := fmt.Sprintf("%s: %s, %s", each.Name, words.Count(each.Updates, "update"), words.Count(each.OpenRisks, "open risk"))
		route.Others = append(route.Others, picture.OtherRoute{Name: title, Stops: each.Versions})
	}
	var schedule document.List
	for _, pool := range p.Pools {
		if len(pool.Unpause) > 0 {
			route.Pauses = append(route.Pauses, picture.Pause{Name: pool.Name, Unpaused: p.UnpausedAt(pool)})
			schedule.Entries = append(schedule.Entries, pausing(pool))
		}
	}
	return append([]document.Block{route.Picture(), schedule}, p.alternatives()...)
}

// pausing is when the nodes of a pool are updated.
func pausing(pool updateplan.Pool) string {
	at := words.List(pool.Unpause, mostNames)
	if pool.Reboots < pool.RebootsUnpaused {
		return fmt.Sprintf("Pause pool %s before the first update, and unpause it at %s until its nodes are updated: %s per node instead of %d.",
			pool.Name, at, words.Count(pool.Reboots, "reboot"), pool.RebootsUnpaused)
	}
	return fmt.Sprintf("Pool %s is paused. Unpause it at %s until its nodes are updated.", pool.Name, at)
}

// alternatives are the other paths, with their open risks; nothing for none.
func (p Plan) alternatives() []document.Block {
	if len(p.Alternatives) == 0 {
		return nil
	}
	table := document.Table{Title: "This plan, and other paths", Columns: []string{"Path", "Updates", "Open risks", "Through"}}
	table.Rows = append(table.Rows, []string{"this plan", strconv.Itoa(len(p.Updates)), strconv.Itoa(p.openRisks()), through(p.Versions())})
	blocks := []document.Block{nil}
	for _, each := range p.Alternatives {
		table.Rows = append(table.Rows, []string{each.Name, strconv.Itoa(each.Updates), strconv.Itoa(each.OpenRisks), through(each.Versions)})
		blocks = append(blocks, document.List{Lead: "Open risks of " + each.Name + ":", Entries: each.Risks})
	}
	blocks[0] = table
	return blocks
}

// through are the releases of a path between the first and the last one.
func through(versions []string) string {
	if len(versions) < 3 {
		return "-"
	}
	return words.List(versions[1:len(versions)-1], 3)
}

func marks(update updateplan.Update) []picture.Mark {
	var all []picture.Mark
	for _, risk := range update.Risks {
		all = append(all, picture.Mark{Mark: markOf(risk), Text: risk.Name})
	}
	for _, f := range update.Findings {
		if blocks(f) {
			all = append(all, picture.Mark{Mark: findingview.Mark(f), Text: f.Name})
		}
	}
	return all
}

func blocks(f finding.Finding) bool {
	return f.Bypass == nil && (f.Outcome == preflight.Fail || f.Outcome == preflight.Unknown)
}

func results(marks []picture.Mark) string {
	var texts []string
	for _, mark := range marks {
		texts = append(texts, mark.Word+": "+mark.Text)
	}
	return strings.Join(texts, "; ")
}

// draw draws the path from top to bottom. A column of # beside it is a pool that is paused.
func (p Plan) draw() string {
	var text strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&text, format+"\n", args...) }
	paused := slices.DeleteFunc(slices.Clone(p.Pools), func(pool updateplan.Pool) bool { return len(pool.Unpause) == 0 })
	for _, each := range p.Updates {
		line("  %s  %s%s", bars(paused, unpausedAt(each.From)), name(each.From), unpausing(each.Unpause))
		bar := bars(paused, never)
		line("  %s   |  %s, channel %s, %s", bar, each.Kind, name(each.Channel), each.ControlPlane)
		for _, risk := range each.Risks {
			line("  %s   |  %s %s", bar, label(risk), name(risk.Name))
		}
		for _, f := range each.Findings {
			if blocks(f) {
				line("  %s   |  %s %s", bar, findingview.Label(f), name(f.Name))
			}
		}
		line("  %s   v", bar)
	}
	var last []string
	for _, pool := range paused {
		last = append(last, pool.Name)
	}
	line("  %s  %s%s", bars(paused, unpausedAt(p.To)), name(p.To), unpausing(last))
	if len(paused) > 0 {
		line("  Columns of #: %s.", words.List(last, mostPools))
	}
	return text.String()
}

func unpausedAt(version string) func(updateplan.Pool) bool {
	return func(pool updateplan.Pool) bool { return slices.Contains(pool.Unpause, version) }
}

func never(updateplan.Pool) bool { return false }

// bars has a column for each pool: # unless it is unpaused.
func bars(pools []updateplan.Pool, unpaused func(updateplan.Pool) bool) string {
	columns := make([]byte, 0, len(pools))
	for _, pool := range pools {
		if unpaused(pool) {
			columns = append(columns, ' ')
		} else {
			columns = append(columns, '#')
		}
	}
	return string(columns)
}

func unpausing(pools []string) string {
	if len(pools) == 0 {
		return ""
	}
	return "  unpause " + words.List(pools, 3) + " until its nodes are updated"
}
