package fleet_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/runner/fleet"
)

// took is a cluster whose last update was that from a version to another one.
func took(name, from, to, outcome string, objects ...string) fleet.Row {
	made := row(name, fleet.Updated)
	made.LastUpdate = &fleet.LastUpdate{From: from, To: to, Outcome: outcome, Objects: objects}
	return made
}

// twin is the row with the ID of a cluster that has another row, of a source.
func twin(of fleet.Row, source string) fleet.Row {
	of.Cluster.ID, of.Cluster.Source = "5d1c2f04-7a3e-4f0b-9a55-0c6a7f3b9e18", source
	return of
}

const from, other, to = "4.18.12", "4.18.17", "4.19.12"

// The sentence about a target counts each cluster once, by what is stored in it, and nothing that is not known is good.
func TestTaken(t *testing.T) {
	many := make([]fleet.Row, 14)
	for i := range many {
		many[i] = took(fmt.Sprintf("prod-%02d", i), map[bool]string{true: other, false: from}[i < 5], to, "Good")
	}
	many[2], many[9] = took("prod-eu-2", other, to, "Regressed", "Deployment shop/web"), took("prod-09", from, to, "Settling")
	offered := row("next", fleet.Clear)
	offered.Target, offered.Targets = "4.20.1", []fleet.Candidate{{Version: "4.20.1", State: fleet.Clear}, {Version: to, State: fleet.Clear}}
	away := row("away", fleet.Unreachable)
	for name, tc := range map[string]struct {
		reason string
		target string
		rows   []fleet.Row
		want   []string
	}{
		"Many": {"each outcome has its number, and what is worse its cluster", to, many, []string{
			"4.19.12: taken by 14 clusters of this fleet, from 4.18.12 (9) and 4.18.17 (5): 12 good, 1 regressed (prod-eu-2: Deployment " +
				"shop/web), 1 settling",
		}},
		"One": {
			"one cluster", to,
			[]fleet.Row{took("a", from, to, "Good")},
			[]string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 good"},
		},
		"None":  {"no cluster has taken it", to, []fleet.Row{row("a", fleet.Clear)}, nil},
		"Other": {"another update says nothing about this one", to, []fleet.Row{took("a", from, other, "Good")}, nil},
		"Unread": {
			"a cluster that does not answer is not counted", to,
			[]fleet.Row{away, took("a", from, to, "Good")},
			[]string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 good"},
		},
		"Unknown": {
			"what is stored does not count", to,
			[]fleet.Row{took("a", from, to, "Unknown"), took("b", from, to, "NotJudged")},
			[]string{"4.19.12: taken by 2 clusters of this fleet, from 4.18.12 (2): 1 unknown, 1 not evaluated"},
		},
		"Fine": {
			"an outcome of a later version is not good", to,
			[]fleet.Row{took("a", from, to, "Fine")},
			[]string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 unknown"},
		},
		"Undecided": {
			"an outcome that no cluster has is not good", to,
			[]fleet.Row{took("a", from, to, "")},
			[]string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 unknown"},
		},
		"RolledBack": {
			"it did not stay", to,
			[]fleet.Row{took("a", from, to, "RolledBack")},
			[]string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 rolled back (a)"},
		},
		"NoOrigin": {
			"the history does not state it", to,
			[]fleet.Row{took("a", "", to, "Good")},
			[]string{"4.19.12: taken by 1 cluster of this fleet, from ? (1): 1 good"},
		},
		"Objects": {
			"what is worse is named as far as a line has room", to,
			[]fleet.Row{took("a", from, to, "Regressed", "A a/1", "A a/2", "A a/3", "A a/4", "A a/5")},
			[]string{
				"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 regressed (a: A a/1, A a/2, A a/3 and 2 more)",
			},
		},
		"Clusters": {"so are the clusters", to, []fleet.Row{
			took("a", from, to, "Regressed"), took("b", from, to, "Regressed"),
			took("c", from, to, "Regressed"), took("d", from, to, "Regressed"),
		}, []string{
			"4.19.12: taken by 4 clusters of this fleet, from 4.18.12 (4): 4 regressed (a; b; c; and 1 more)",
		}},
		"Offered": {
			"without a requested version, those that a cluster may be updated to, the newest first", "",
			[]fleet.Row{offered, took("a", from, to, "Good"), took("b", from, "4.20.1", "Good"), took("c", from, other, "Good")},
			[]string{
				"4.20.1: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 good",
				"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 good",
			},
		},
		"Claimed": {
			"two clusters of a source claim one ID: neither counts", to,
			[]fleet.Row{twin(took("a", from, to, "Good"), "hub"), twin(took("b", from, to, "Good"), "hub")},
			nil,
		},
		"Twice": {"a cluster that is known twice counts once", to, []fleet.Row{
			twin(took("a", from, to, "Good"), "context a"),
			twin(took("b", from, to, "Good"), "context b"),
		}, []string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 good"}},
		"Differ": {"the user of one row may not read it", to, []fleet.Row{
			twin(took("a", from, to, "Good"), "context a"),
			twin(took("b", from, to, "Unknown"), "context b"),
		}, []string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 unknown"}},
		"Worse": {"a row that is not good counts", to, []fleet.Row{twin(took("a", from, to, "Good"), "context a"), twin(took("b", from, to,
			"Regressed"), "context b")}, []string{"4.19.12: taken by 1 cluster of this fleet, from 4.18.12 (1): 1 regressed (a)"}},
		"Two": {
			"the rows are about two updates", to,
			[]fleet.Row{twin(took("a", from, to, "Good"), "context a"), twin(took("b", other, to, "Good"), "context b")},
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			reversed := slices.Clone(tc.rows)
			slices.Reverse(reversed)
			for _, rows := range [][]fleet.Row{tc.rows, reversed} {
				var got []string
				for _, each := range fleet.Of(tc.target, rows).Counts.Taken {
					got = append(got, each.Sentence())
				}
				if !slices.Equal(got, tc.want) {
					t.Errorf("%s:\ngot  %q\nwant %q", tc.reason, got, tc.want)
				}
			}
		})
	}
}

// A fleet that is not trusted makes neither a long table nor a text that a terminal obeys.
func TestAttacksTaken(t *testing.T) {
	var rows []fleet.Row
	hostile := strings.Repeat("\x1b[2J\n", 1<<12)
	for i := range 300 {
		made := took(fmt.Sprint("c", i), fmt.Sprint(i, hostile), to, "Regressed", slices.Repeat([]string{hostile}, 500)...)
		made.LastUpdate.Message, made.LastUpdate.MoreObjects = hostile, -1
		rows = append(rows, made)
	}
	table := fleet.Of(to, rows)
	if len(table.Counts.Taken) != 1 {
		t.Fatalf("%d versions", len(table.Counts.Taken))
	}
	taken := table.Counts.Taken[0]
	if text := taken.Sentence(); len(taken.From) > 10 || len(taken.Worse) > 20 || len(text) > 8<<10 || strings.ContainsAny(text, "\x1b\n") {
		t.Errorf("%d origins, %d clusters, a sentence of %d bytes", len(taken.From), len(taken.Worse), len(text))
	}
}
