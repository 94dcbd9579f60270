package credential

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/openshift/update-preflight/collector/words"
)

const (
	helperPrefix = "docker-credential-"
	// helperTimeout bounds one call of a helper.
	helperTimeout = 15 * time.Second
)

// callHelper runs a credential helper of this machine for a host, by the protocol
// of github.com/docker/docker-credential-helpers. When the helper has no
// credential, access is anonymous.
func callHelper(ctx context.Context, helper, host string) (authn.Authenticator, error) {
	// A name with a slash would be executed as a path.
	if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(helper) {
		return nil, &HelperError{helper: words.Line(helper, maxName), err: errors.New("its name is not valid")}
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	server := host
	if host == DockerHub {
		server = "https://index.docker.io/v1/"
	}
	command := exec.CommandContext(ctx, helperPrefix+helper, "get") //nolint:gosec // the user's own configuration names the program
	command.Stdin = strings.NewReader(server)
	command.WaitDelay = time.Second
	var output bytes.Buffer
	command.Stdout = &output
	if err := command.Run(); err != nil {
		if strings.Contains(output.String(), "credentials not found") {
			return authn.Anonymous, nil
		}
		return nil, &HelperError{helper: helper, err: err}
	}
	var received struct {
		Username string `json:"Username"`
		Secret   string `json:"Secret"`
	}
	if err := json.Unmarshal(output.Bytes(), &received); err != nil {
		return nil, &HelperError{helper: helper, err: errors.New("its output is not valid JSON")}
	}
	if received.Username == "<token>" {
		return authn.FromConfig(authn.AuthConfig{IdentityToken: received.Secret}), nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: received.Username, Password: received.Secret}), nil
}

// HelperError reports that a credential helper failed. It contains no secret.
type HelperError struct {
	helper string
	err    error
}

// Error names the helper and the cause.
func (e *HelperError) Error() string {
	return fmt.Sprintf("the credential helper %s%s failed: %v", helperPrefix, e.helper, e.err)
}
