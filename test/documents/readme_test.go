package documents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/documents"
)

// TestReadmeShowsAVerdict fails for a line of the verdict in the README that the expected
// output of the test does not have after the line before.
func TestReadmeShowsAVerdict(t *testing.T) {
	t.Parallel()
	blocks := documents.Blocks(read(t, "README.md"))
	if len(blocks) == 0 || blocks[0].Language != "text" {
		t.Fatal("README.md does not open with a verdict")
	}
	golden := strings.Split(read(t, "test/commands/testdata/target-4.19.1.text"), "\n")
	for line := range strings.SplitSeq(strings.TrimSpace(blocks[0].Text), "\n") {
		at := slices.Index(golden, line)
		if at < 0 {
			t.Fatalf("the verdict does not have this line, or has it earlier: %q", line)
		}
		golden = golden[at+1:]
	}
}
