package checkresult

import (
	"fmt"
	"strings"

	"github.com/openshift/update-preflight/collector/words"
)

// Limits of text that comes from a pod, in bytes.
const (
	MaxMessage = 32 << 10
	MaxLine    = 2 << 10
	maxWord    = 128
	maxTail    = 1 << 10
	// tailLines is how many of the last lines of a log a message has.
	tailLines = 10
)

// Tail returns the last lines of a log, without the lines of SDK results.
func Tail(log string) string {
	lines := strings.Split(words.Lines(words.Last(log, 4*maxTail), 4*maxTail), "\n")
	var kept []string
	for _, text := range lines {
		if strings.TrimSpace(text) != "" && !strings.HasPrefix(text, "preflight/") {
			kept = append(kept, text)
		}
	}
	return words.Last(strings.Join(kept[max(0, len(kept)-tailLines):], "\n"), maxTail)
}

// Sentence joins a clause and its detail with a colon.
func Sentence(clause, detail string) string {
	if detail = strings.TrimSpace(detail); detail == "" {
		return clause
	}
	return fmt.Sprintf("%s: %s", clause, detail)
}
