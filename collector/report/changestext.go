package report

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/words"
)

// WriteChanges renders the changes in one of the Formats.
func WriteChanges(w io.Writer, format string, changes Changes) error {
	if err := CheckFormat(format); err != nil {
		return err
	}
	if format != formatText {
		return WriteDocument(w, format, changes)
	}
	var page bytes.Buffer
	writeSides(&page, changes)
	for _, change := range changes.New {
		writeNew(&page, change)
	}
	for _, change := range changes.Changed {
		writeChanged(&page, change)
	}
	for _, change := range changes.Fixed {
		writeFixed(&page, change)
	}
	if len(changes.Added) > 0 {
		writeNames(&page, "ADDED", changes.Added)
	}
	if len(changes.Dropped) > 0 {
		writeNames(&page, "DROPPED", changes.Dropped)
	}
	fmt.Fprintf(&page, "Verdict: %s before, %s now\n", decision(changes.Before), decision(changes.After))
	_, err := w.Write(page.Bytes())
	return err
}

func writeSides(w io.Writer, changes Changes) {
	before, after := changes.Before, changes.After
	if was, is := decision(before), decision(after); was == is {
		fmt.Fprintf(w, "%s, as before.\n\n", is)
	} else {
		fmt.Fprintf(w, "%s now, %s before.\n\n", is, was)
	}
	row(w, "Before", ran(before))
	row(w, "Now", ran(after))
	if before.Target.Image != after.Target.Image {
		row(w, "Releases", before.Target.Image+" before,\n"+after.Target.Image+" now")
	}
	if before.Cluster.ID != after.Cluster.ID {
		row(w, "Clusters", fmt.Sprintf("these are runs on two clusters: %s before, %s now", before.Cluster.ID, after.Cluster.ID))
	}
	row(w, "Checks", fmt.Sprintf("%d of %d reported before, %d of %d now",
		before.Expected.Reported, before.Expected.Checks, after.Expected.Reported, after.Expected.Checks))
	row(w, "Findings", fmt.Sprintf("%d new, %d changed, %d fixed, %d the same", len(changes.New), len(changes.Changed), len(changes.Fixed), changes.Same))
	fmt.Fprintln(w)
}

// decision is never silent about force.
func decision(side Side) string {
	if side.Verdict.Forced {
		return words.Printable(string(side.Verdict.Decision)) + " (FORCED)"
	}
	return words.Printable(string(side.Verdict.Decision))
}

// ran says what a run was about, and how it ended.
func ran(side Side) string {
	phase := side.Run.Phase + " at " + side.Run.CompletionTime
	if side.Run.Phase == PhaseRunning {
		phase = side.Run.Phase + " since " + side.Run.StartTime
	}
	return fmt.Sprintf("%s of run %s, from %s to %s, %s", decision(side), side.Run.ID,
		cmp.Or(side.Cluster.Version, "an unknown version"), cmp.Or(side.Target.Version, "an unknown version"), phase)
}

// outcome is how a finding ended, in one word and its reason.
func outcome(f finding.Finding) string {
	return fmt.Sprintf("%s (%s)%s", label(f), words.Printable(f.Reason), note(f))
}

func writeNew(w io.Writer, change Change) {
	was := ""
	if change.Before != nil {
		was = ", was " + outcome(*change.Before)
	}
	fmt.Fprintf(w, "%-8s %s: %s%s\n", "NEW", words.Printable(change.After.Name), outcome(*change.After), was)
	writeDetails(w, *change.After)
	fmt.Fprintln(w)
}

func writeChanged(w io.Writer, change Change) {
	was, is := outcome(*change.Before), outcome(*change.After)
	if was == is {
		fmt.Fprintf(w, "%-8s %s: %s as before\n", "CHANGED", words.Printable(change.After.Name), is)
	} else {
		fmt.Fprintf(w, "%-8s %s: %s, was %s\n", "CHANGED", words.Printable(change.After.Name), is, was)
	}
	if strings.TrimSpace(change.Before.Message) != strings.TrimSpace(change.After.Message) {
		paragraph(w, "Before: ", change.Before.Message)
		paragraph(w, "Now:    ", change.After.Message)
		after := *change.After
		after.Message = ""
		writeDetails(w, after)
	} else {
		writeDetails(w, *change.After)
	}
	fmt.Fprintln(w)
}

func writeFixed(w io.Writer, change Change) {
	is := "is gone"
	if change.After != nil {
		is = outcome(*change.After)
	}
	fmt.Fprintf(w, "%-8s %s: %s, was %s\n", "FIXED", words.Printable(change.Before.Name), is, outcome(*change.Before))
	paragraph(w, "Before: ", change.Before.Message)
	fmt.Fprintln(w)
}
