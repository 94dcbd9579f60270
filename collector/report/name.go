package report

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// The kinds in the format name.
const (
	// RunName is the kind of a run: its name is the ID.
	RunName = "preflight"
	// UpdateName is the kind of a target: its name is the version.
	UpdateName = "update"
	// CheckName is the kind of a check of a release.
	CheckName = "check"
)

// BareName is a name with or without its kind, without it.
func BareName(kind, text string) string { return strings.TrimPrefix(text, kind+"/") }

// WriteNames writes one line for each name, with its kind.
func WriteNames(w io.Writer, kind string, names []string) error {
	for _, name := range names {
		if _, err := fmt.Fprintln(w, kind+"/"+words.Line(name, maxName)); err != nil {
			return err
		}
	}
	return nil
}

// WriteName writes preflight/ID. A report that was not recorded has no name.
func (r Report) WriteName(w io.Writer) error {
	if r.Run.ID == "" {
		return errors.New("the report has no name: its run is not recorded")
	}
	return WriteNames(w, RunName, []string{r.Run.ID})
}

// WriteShort writes the verdict in one line, as at the end of the text.
func (r Report) WriteShort(w io.Writer) error {
	_, err := fmt.Fprintln(w, words.Line(r.chatLine(Style{}), maxCommand))
	return err
}

// WriteName writes update/VERSION for every target, in the order of the text.
func (t Targets) WriteName(w io.Writer) error {
	var versions []string
	for _, target := range byUrgency(t.Targets) {
		versions = append(versions, target.Version)
	}
	return WriteNames(w, UpdateName, versions)
}
