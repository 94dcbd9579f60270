package history_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/openshift/update-preflight/cmd/oc-preflight/history"
	"github.com/openshift/update-preflight/collector/afterupdate"
	"github.com/openshift/update-preflight/collector/document/format"
	"github.com/openshift/update-preflight/collector/update"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/baselinestore"
	"github.com/openshift/update-preflight/runner/record/judgement"
	"github.com/openshift/update-preflight/runner/record/standing"
	"github.com/openshift/update-preflight/test/golden"
)

var start = time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)

// run is a run that began some time after start.
func run(id string, after time.Duration, phase record.Phase, decision string) record.Record {
	return record.Record{
		Intent: record.Intent{
			ID: id, From: "4.18.3", Target: update.Release{Version: "4.19.0", Image: "registry/release@sha256:bb"},
			ToolVersion: "v0.1.0", Checks: []string{"A", "B"},
		},
		Phase: phase, Decision: decision, StartTime: start.Add(after), Authentication: record.Authentication{State: record.Authentic},
	}
}

func ended(run record.Record, took time.Duration) record.Record {
	run.CompletionTime = run.StartTime.Add(took)
	return run
}

func held(run record.Record) record.Record {
	run.Holder, run.HolderExpiry = "laptop_1", start.Add(51*time.Hour)
	return run
}

// edited is the record of a run as it is returned when it was edited.
func edited(run record.Record, state record.Authenticity) record.Record {
	run.Decision, run.Authentication = "", record.Authentication{State: state}
	return run
}

// provisional is a run of the second update of a path.
func provisional(run record.Record) record.Record {
	run.Provisional, run.Target.Version = true, "4.20.1"
	run.Selection = `{"images":"check","path":[{"version":"4.18.3","image":"r"},{"version":"4.19.0","image":"r"}]}`
	return run
}

func killed(run record.Record) record.Record {
	run.Holder, run.HolderExpiry = "laptop_2", start.Add(50*time.Hour)
	return run
}

func TestGolden(t *testing.T) {
	unreadable := record.Record{
		Intent: record.Intent{ID: "77777777-89ab-4cde-8f01-23456789abcd"}, Phase: "Odd\x1b[2J", StartTime: start,
		Authentication: record.Authentication{State: record.Unauthentic},
	}
	for name, runs := range map[string][]record.Record{
		"none": nil,
		"some": {
			held(run("aaaaaaaa-89ab-4cde-8f01-23456789abcd", 50*time.Hour, record.Running, "")),
			run("bbbbbbbb-89ab-4cde-8f01-23456789abcd", 49*time.Hour, record.Running, ""),
			killed(run("abababab-89ab-4cde-8f01-23456789abcd", 48*time.Hour, record.Running, "")),
			ended(run("cccccccc-89ab-4cde-8f01-23456789abcd", 26*time.Hour, record.Complete, "Ready"), 9*time.Second),
			ended(run("dddddddd-89ab-4cde-8f01-23456789abcd", 25*time.Hour, record.Complete, "Blocked"), 11*time.Minute),
			ended(run("eeeeeeee-89ab-4cde-8f01-23456789abcd", time.Hour, record.Canceled, "Undecided"), time.Second),
			ended(run("ffffffff-89ab-4cde-8f01-23456789abcd", 0, record.Interrupted, ""), 0),
			unreadable,
		},
		"unverified": {
			edited(ended(run("cccccccc-89ab-4cde-8f01-23456789abcd", 26*time.Hour, record.Complete, "Ready"), 9*time.Second), record.Unauthentic),
			edited(ended(run("dddddddd-89ab-4cde-8f01-23456789abcd", 25*time.Hour, record.Complete, "Ready"), 9*time.Second), record.Unverifiable),
		},
		"path": {
			provisional(ended(run("bbbbbbbb-89ab-4cde-8f01-23456789abcd", 50*time.Hour, record.Complete, "NothingKnown"), 9*time.Second)),
			edited(provisional(ended(run("cccccccc-89ab-4cde-8f01-23456789abcd", 49*time.Hour, record.Complete, "NothingKnown"), 9*time.Second)),
				record.Unauthentic),
			provisional(killed(run("abababab-89ab-4cde-8f01-23456789abcd", 48*time.Hour, record.Running, ""))),
			ended(run("dddddddd-89ab-4cde-8f01-23456789abcd", 47*time.Hour, record.Complete, "Ready"), 9*time.Second),
		},
		"alike": {
			ended(run("cccccccc-89ab-4cde-8f01-23456789abcd", time.Hour, record.Complete, "Ready"), time.Second),
			ended(run("cccccccc-89cc-4cde-8f01-23456789abcd", 0, record.Complete, "Ready"), -time.Second),
		},
	} {
		for _, output := range []string{"text", "wide", "name", "json", "markdown", "html"} {
			t.Run(name+"."+output, func(t *testing.T) {
				var got bytes.Buffer
				if err := format.Write(&got, output, history.Of(at(runs), judgement.Runs{}), format.Style{}); err != nil {
					t.Fatal(err)
				}
				golden.Compare(t, "testdata/"+name+"."+output, got.Bytes())
			})
		}
	}
}

// On a terminal each run is one line, with a symbol that a limited verdict does not have.
func TestTerminal(t *testing.T) {
	runs := []record.Record{
		ended(run("cccccccc-89ab-4cde-8f01-23456789abcd", 50*time.Hour, record.Complete, "Blocked"), 9*time.Second),
		ended(run("dddddddd-89ab-4cde-8f01-23456789abcd", 49*time.Hour, record.Complete, "Ready"), 9*time.Second),
		held(run("aaaaaaaa-89ab-4cde-8f01-23456789abcd", 48*time.Hour, record.Running, "")),
	}
	runs[0].Requester = record.Ahead
	for _, width := range []int{80, 40} {
		var got bytes.Buffer
		if err := format.Write(&got, "text", history.Of(at(runs), judgement.Runs{}), format.Style{Width: width, Symbols: true}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(got.String()) {
			if columns := utf8.RuneCountInString(line) - 1; columns > width {
				t.Errorf("%d columns on a terminal of %d: %s", columns, width, line)
			}
		}
		golden.Compare(t, "testdata/"+fmt.Sprintf("terminal-%d.text", width), got.Bytes())
	}
}

// What was judged after an update is a column, and a judgement that is not authentic states nothing else.
func TestAfterUpdate(t *testing.T) {
	var runs []record.Record
	var judged []baselinestore.Judgement
	for i, of := range []baselinestore.Judgement{
		{Report: afterupdate.Report{Decision: afterupdate.Regressed}, Authentication: record.Authentication{State: record.Authentic}},
		{Report: afterupdate.Report{Decision: afterupdate.Good}, Authentication: record.Authentication{State: record.Authentic}},
		{Authentication: record.Authentication{State: record.Unauthentic}},
		{Authentication: record.Authentication{State: record.Unverifiable}},
	} {
		of.Run = fmt.Sprintf("%d0000000-89ab-4cde-8f01-23456789abcd", i)
		runs, judged = append(runs, ended(run(of.Run, time.Duration(30-i)*time.Hour, record.Complete, "Ready"), 9*time.Second)),
			append(judged, of)
	}
	runs = append(runs, ended(run("ffffffff-89ab-4cde-8f01-23456789abcd", time.Hour, record.Complete, "Blocked"), time.Second))
	for _, output := range []string{"text", "wide", "json"} {
		var got bytes.Buffer
		if err := format.Write(&got, output, history.Of(at(runs), judgement.RunsOf(judged, nil, nil)), format.Style{}); err != nil {
			t.Fatal(err)
		}
		golden.Compare(t, "testdata/judged."+output, got.Bytes())
	}
}

func TestUnknownFormatNamesTheOthers(t *testing.T) {
	err := format.Write(&bytes.Buffer{}, "xml", history.Of(standing.Verdicts{}, judgement.Runs{}), format.Style{})
	if err == nil || !strings.Contains(err.Error(), `"xml": it must be one of text, wide, name, json, yaml`) {
		t.Errorf("format xml: %v", err)
	}
}

func TestLimit(t *testing.T) {
	var runs []record.Record
	for i := range 23 {
		runs = append(runs, ended(run(fmt.Sprintf("%08d-89ab-4cde-8f01-23456789abcd", i), time.Duration(50-i)*time.Hour, record.Complete,
			"Ready"), time.Second))
	}
	tests := map[string]struct {
		reason string
		output string
		limit  int
		lines  int
		last   string
	}{
		"default": {"20 runs, and a line for the header and for the others", "text", 0, 22, "... and 3 more (--limit 0)\n"},
		"one":     {"the newest run alone", "wide", 1, 3, "... and 22 more (--limit 0)\n"},
		"exact":   {"nothing is left out, so the last line is a run", "text", 23, 24, ""},
		"all":     {"a negative limit lists all", "wide", -1, 24, ""},
		"name":    {"scripts receive all names", "name", 1, 23, ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			if err := format.Write(&got, test.output, history.Of(at(runs), judgement.Runs{}),
				format.Style{Limit: test.limit, AllHint: "--limit 0"}); err != nil {
				t.Fatal(err)
			}
			if lines := strings.Count(got.String(), "\n"); lines != test.lines || !strings.HasSuffix(got.String(), test.last) {
				t.Errorf("%s: %d lines, want %d with %q last:\n%s", test.reason, lines, test.lines, test.last, &got)
			}
		})
	}
}

// at asks about these runs, two days after the first.
func at(runs []record.Record) standing.Verdicts {
	return standing.Verdicts{Question: standing.Question{Runs: runs, Present: standing.Present{Now: start.Add(51 * time.Hour)}}}
}
