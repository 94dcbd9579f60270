package newcomer_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block is a fenced block of the README. Its language is go, followed by the name of
// the file; sh for commands; text for the output of the commands in the previous
// block, where … matches any text; or console for text that is not executed.
type block struct {
	section, language, file, text string
}

func (b block) isInRepository() bool { return b.section == inRepository }

// readme returns the blocks of the SDK's README.
func readme(t *testing.T) []block {
	t.Helper()
	text, err := os.ReadFile("../../preflight-sdk/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var blocks []block
	section := ""
	for _, match := range regexp.MustCompile("(?ms)^## (.*?)$|^```(\\w+) ?(\\S*)\n(.*?)^```$").FindAllStringSubmatch(string(text), -1) {
		if match[2] == "" {
			section = match[1]
			continue
		}
		blocks = append(blocks, block{section, match[2], match[3], match[4]})
	}
	return blocks
}

// documentedOutput returns the output of the commands before these blocks; empty if
// the README does not document it.
func documentedOutput(blocks []block) string {
	if len(blocks) == 0 || blocks[0].language != "text" {
		return ""
	}
	return blocks[0].text
}

// TestBlockLanguages fails for blocks that the other tests would ignore.
func TestBlockLanguages(t *testing.T) {
	t.Parallel()
	var languages []string
	for _, b := range readme(t) {
		languages = append(languages, b.language)
		if (b.language == "go") != (b.file != "") {
			t.Errorf("section %q: a block of %s with file name %q", b.section, b.language, b.file)
		}
	}
	slices.Sort(languages)
	if diff := cmp.Diff([]string{"console", "go", "sh", "text"}, slices.Compact(languages)); diff != "" {
		t.Errorf("languages of blocks (-supported +used):\n%s", diff)
	}
	if !slices.ContainsFunc(readme(t), block.isInRepository) {
		t.Errorf("no block in the section %q", inRepository)
	}
}
