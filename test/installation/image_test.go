package installation_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/openshift/update-preflight/test/installation"
)

// The image of the tests has the program at the path of the Dockerfile.
func TestImageMatchesDockerfile(t *testing.T) {
	text, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`ENTRYPOINT ["` + installation.Program + `"]`, "USER 65532", "./cmd/preflight-controller\n",
		"CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -ldflags='-s -w'",
	} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the Dockerfile does not have %q", line)
		}
	}
}

// What the image of a release consists of does not change with a tag.
func TestBasesHaveDigests(t *testing.T) {
	text, err := os.ReadFile(root + "/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	bases := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(string(text), -1)
	if len(bases) == 0 {
		t.Fatal("the Dockerfile has no base")
	}
	for _, base := range bases {
		if !regexp.MustCompile(`^\S+:\S+@sha256:[0-9a-f]{64}$`).MatchString(base[1]) {
			t.Errorf("the base %q is not NAME:TAG@DIGEST", base[1])
		}
	}
}
