package newcomer_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// block is one fenced block of the README. After the fence is its language: go
// with the name of the file that it is, sh for commands to type, text for what
// these print (… stands for what differs), console for what is only shown.
type block struct {
	section, language, file, text string
}

// readme reads the blocks of the SDK's README.
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

// promised is what the README says that the commands before these blocks
// print; empty where it says nothing.
func promised(blocks []block) string {
	if len(blocks) == 0 || blocks[0].language != "text" {
		return ""
	}
	return blocks[0].text
}

// A block that the tests do not understand would not be tested.
func TestEveryBlockIsUnderstood(t *testing.T) {
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
		t.Errorf("languages of blocks (-known +used):\n%s", diff)
	}
}
