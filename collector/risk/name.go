package risk

import (
	"fmt"
	"hash/crc32"
	"regexp"
	"strings"

	"github.com/openshift/update-preflight/collector/finding"
)

// maxKept bounds the part of an invalid name that is kept, in bytes.
const maxKept = 128

var invalidCharacters = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// riskName is the name by which a risk is accepted: its own where that is valid,
// otherwise one derived from it and from kind. Different names have different
// results, and a derived name is none that another risk has.
func riskName(kind, name string) string {
	switch {
	case finding.ValidName(name):
		return name
	case name == "":
		return kind
	}
	derived := invalidCharacters.ReplaceAllString(name, "-")
	derived = derived[:min(len(derived), maxKept)]
	if derived == name {
		return kind + "-" + name
	}
	return fmt.Sprintf("%s-%s-%08x", kind, strings.Trim(derived, "-"), crc32.ChecksumIEEE([]byte(name)))
}
