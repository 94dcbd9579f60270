package risk

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"
)

const (
	// maxName is what ClusterVersion takes of a name, in
	// spec.desiredUpdate.acceptRisks.
	maxName = 256
	// maxKept is what is kept of a name that is not valid.
	maxKept = 128
)

// accepted is the name by which a risk is accepted: its own where that is valid
// (pkg/risk/risk.go of CVO), and else one made of it. Two names do not become
// one, and none becomes one that somebody else may have: kind comes before it.
func accepted(kind, name string) string {
	switch {
	case valid(name):
		return name
	case name == "":
		return kind
	}
	made := regexp.MustCompile(`[^A-Za-z0-9.-]+`).ReplaceAllString(name, "-")
	made = made[:min(len(made), maxKept)]
	if made == name {
		return kind + "-" + name
	}
	return fmt.Sprintf("%s-%s-%08x", kind, strings.Trim(made, "-"), crc32.ChecksumIEEE([]byte(name)))
}

// valid is ^[A-Z][A-Za-z0-9.-]*$.
func valid(name string) bool {
	if name == "" || len(name) > maxName || name[0] < 'A' || name[0] > 'Z' {
		return false
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return !allowed(r) })
}

func allowed(r rune) bool {
	return 'A' <= r && r <= 'Z' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '-'
}
