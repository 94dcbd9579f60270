package installation_test

import (
	"os"
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
	for _, line := range []string{`ENTRYPOINT ["` + installation.Program + `"]`, "USER 65532", "./cmd/preflight-controller\n", "CGO_ENABLED=0 go build -trimpath -tags=grpcnotrace -ldflags='-s -w'"} {
		if !strings.Contains(string(text), line) {
			t.Errorf("the Dockerfile does not have %q", line)
		}
	}
}
