package command

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/openshift/update-preflight/collector/jobs"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner"
)

// display shows what a run is doing while it does.
type display interface {
	// show is called one event at a time.
	show(event runner.Event)
	// clear leaves the screen to the report; events may still follow.
	clear()
	// close is the end.
	close()
}

// newDisplay chooses live lines for a terminal, and plain lines otherwise.
func newDisplay(w io.Writer) display {
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return &plain{w: w, start: time.Now(), told: map[string]string{}}
	}
	return newLive(file)
}

// plain writes one line for each change, so that a log shows when what
// happened, and nothing twice.
type plain struct {
	w     io.Writer
	start time.Time
	told  map[string]string
}

func (p *plain) show(event runner.Event) {
	switch {
	case event.Step != "":
		p.line(event.Step)
	case event.Status != nil:
		p.status(*event.Status)
	default:
		for _, finding := range event.Answered {
			p.line(answer(finding))
		}
	}
}

func (p *plain) status(status jobs.Status) {
	text := strings.TrimSpace(string(status.State) + " " + status.Detail)
	if status.State == jobs.Done || p.told[status.Check] == text {
		return
	}
	p.told[status.Check] = text
	p.line(status.Check + ": " + text)
}

func (p *plain) line(text string) {
	fmt.Fprintf(p.w, "%6.1fs  %s\n", time.Since(p.start).Seconds(), oneLine(text))
}

func (*plain) clear() {}
func (*plain) close() {}

// answer is how a finished check reads in the progress.
func answer(finding preflight.Finding) string {
	return fmt.Sprintf("%s: %s (%s)", finding.Name, finding.Outcome, finding.Reason)
}

// oneLine keeps text from outside from moving the cursor.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return ' '
		}
		if unicode.IsPrint(r) {
			return r
		}
		return -1
	}, text)
}
