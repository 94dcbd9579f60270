package build

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// maxErrors bounds how much of the Go tool's messages an error quotes, in bytes.
const maxErrors = 4096

// progress follows the messages of "go build -v", which names each package that
// is compiled and each module that is downloaded on a line of its own.
type progress struct {
	mutex    sync.Mutex
	compiled int
	total    int // 0: not known yet
	loading  string
	messages strings.Builder
}

// follow reads to the end.
func (p *progress) follow(output io.Reader) error {
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		p.line(lines.Text())
	}
	return lines.Err()
}

func (p *progress) line(line string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	module, downloading := strings.CutPrefix(line, "go: downloading ")
	switch {
	case downloading:
		p.loading = module
	case strings.ContainsAny(line, " \t:#"):
		if p.messages.Len() < maxErrors {
			p.messages.WriteString(line + "\n")
		}
	default:
		p.compiled++
		p.loading = ""
	}
}

// expect sets the total number of packages.
func (p *progress) expect(total int) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.total = total
}

// String is the state in a few words.
func (p *progress) String() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	switch {
	case p.loading != "":
		return "downloading " + p.loading
	case p.total == 0:
		return fmt.Sprintf("%d packages compiled", p.compiled)
	default:
		return fmt.Sprintf("%d of %d packages compiled", p.compiled, max(p.total, p.compiled))
	}
}

// errors are the messages that are neither a package nor a download.
func (p *progress) errors() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return strings.TrimSpace(p.messages.String())
}

// display shows the progress of one step.
type display struct {
	out io.Writer
	// terminal is true where a line can be written over.
	terminal bool
	began    time.Time
}

// update shows a state. On a terminal it replaces the previous one.
func (d display) update(state fmt.Stringer) {
	if d.terminal {
		fmt.Fprintf(d.out, "\r\033[K      %s (%s)", state, d.elapsed())
		return
	}
	fmt.Fprintf(d.out, "      %s (%s)\n", state, d.elapsed())
}

// end shows how long the step took.
func (d display) end() {
	if d.terminal {
		fmt.Fprint(d.out, "\r\033[K")
	}
	fmt.Fprintf(d.out, "      done in %s\n", d.elapsed())
}

func (d display) elapsed() time.Duration {
	return time.Since(d.began).Round(time.Second)
}
