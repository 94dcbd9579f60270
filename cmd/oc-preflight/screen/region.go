package screen

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/clipperhouse/displaywidth"

	"github.com/openshift/update-preflight/collector/document/format"
)

// Control sequences of terminals: ECMA-48 section 8.3, the cursor of the VT100 (DECSC, DECRC), and the synchronized
// output of terminals that have it (private mode 2026), so that no half frame is shown.
// Lines are overwritten and erased one by one: a terminal that is asked to erase a whole screen may keep it in its
// scrollback, as tmux does, with each frame.
const (
	beginFrame = "\x1b[?2026h"
	endFrame   = "\x1b[?2026l"
	cursorUp   = "\x1b[%dA"
	cursorDown = "\x1b[B"
	saveCursor = "\x1b7"
	loadCursor = "\x1b8"
	eraseLine  = "\x1b[K"
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

// Draw replaces the lines of the region, after writing the lines of scroll above them. width is the
// present number of columns of the terminal. A line that the terminal shows in several rows
// since it became narrower is erased by its rows.
func (r *Region) Draw(lines []string, scroll string, width int) error {
	if len(lines) == 0 && len(r.drawn) == 0 && scroll == "" {
		return nil
	}
	var page strings.Builder
	page.WriteString(beginFrame)
	left := r.start(&page, width)
	for line := range strings.Lines(scroll) {
		rows := rowsOf(widthOf(strings.TrimRight(line, "\n")), width)
		erase(&page, rows)
		page.WriteString(line)
		left -= rows
	}
	for _, line := range lines {
		erase(&page, 1)
		page.WriteString(line + "\n")
		r.drawn = append(r.drawn, widthOf(line))
		left--
	}
	erase(&page, left+1)
	page.WriteString(endFrame)
	_, err := io.WriteString(r.w, page.String())
	return err
}

// start moves to the first row of the lines that were drawn, and returns the number of their rows. The cursor need not
// be in the first column: the terminal echoes Ctrl-C.
func (r *Region) start(page *strings.Builder, width int) int {
	rows := 0
	for _, drawn := range r.drawn {
		rows += rowsOf(drawn, width)
	}
	if rows > 0 {
		fmt.Fprintf(page, "\r"+cursorUp, rows)
	}
	r.drawn = r.drawn[:0]
	return rows
}

// erase erases that many rows from the cursor on, at least one, and leaves the cursor where it is.
func erase(page *strings.Builder, rows int) {
	page.WriteString(saveCursor + eraseLine)
	for range rows - 1 {
		page.WriteString(cursorDown + eraseLine)
	}
	page.WriteString(loadCursor)
}

// rowsOf is the number of rows in which a terminal shows a line.
func rowsOf(line, width int) int {
	return max(1, (line+width-1)/max(width, 1))
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
