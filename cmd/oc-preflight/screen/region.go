package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/openshift/update-preflight/collector/document/format"
)

// Control sequences of terminals: ECMA-48 section 8.3, and the synchronized output of
// terminals that have it (private mode 2026), so that no half frame is shown.
const (
	beginFrame = "\x1b[?2026h"
	endFrame   = "\x1b[?2026l"
	cursorUp   = "\x1b[%dA"
	eraseBelow = "\x1b[J"
)

// colored measures text that may have control sequences, which take no column.
func colored() displaywidth.Options { return displaywidth.Options{ControlSequences: true} }

// widthOf is the number of columns that a line takes.
func widthOf(line string) int { return colored().String(line) }

// clip is a line in at most that many columns.
func clip(line string, most int, style format.Style) string {
	most, more := max(most, 1), style.Ellipsis()
	if widthOf(more) > most {
		more = ""
	}
	return colored().TruncateString(line, most, more)
}

// truncate returns at most rows lines, the last of which counts the lines that are left out.
func truncate(lines []string, rows int, more func(rest int) string) []string {
	switch {
	case len(lines) <= rows:
		return lines
	case rows < 1:
		return nil
	}
	return append(slices.Clone(lines[:rows-1]), more(len(lines)-rows+1))
}

// Region is the last lines of a terminal, which are drawn again and again. What is above
// stays on the screen and in its scrollback, and the keyboard is not used.
type Region struct {
	w io.Writer
	// drawn are the widths of the lines, in columns.
	drawn []int
}

// NewRegion is an empty region of the terminal w.
func NewRegion(w io.Writer) *Region { return &Region{w: w} }

// Draw replaces the lines of the region, after writing scroll above them. width is the
// present number of columns of the terminal. A terminal that shows a line in several rows
// since it became narrower is erased by its rows.
func (r *Region) Draw(lines []string, scroll string, width int) error {
	if len(lines) == 0 && len(r.drawn) == 0 && scroll == "" {
		return nil
	}
	var page strings.Builder
	page.WriteString(beginFrame)
	r.erase(&page, width)
	page.WriteString(scroll)
	for _, line := range lines {
		page.WriteString(line + "\n")
		r.drawn = append(r.drawn, widthOf(line))
	}
	page.WriteString(endFrame)
	_, err := io.WriteString(r.w, page.String())
	return err
}

// erase removes the lines. The cursor need not be in the first column: the terminal echoes
// Ctrl-C.
func (r *Region) erase(page *strings.Builder, width int) {
	rows := 0
	for _, drawn := range r.drawn {
		rows += max(1, (drawn+width-1)/max(width, 1))
	}
	if rows > 0 {
		page.WriteString("\r" + fmt.Sprintf(cursorUp, rows) + eraseBelow)
	}
	r.drawn = r.drawn[:0]
}

// Fit is a text in at most height lines of at most the style's columns; the last counts those
// that are left out.
func Fit(text string, height int, style format.Style) []string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, clip(strings.TrimRight(line, "\n"), style.Width, style))
	}
	return truncate(lines, height, func(rest int) string { return clip(fmt.Sprintf("... and %d more lines", rest), style.Width, style) })
}
