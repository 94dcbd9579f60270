package registry

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
)

const (
	// helperPrefix is what the names of credential helpers begin with.
	helperPrefix = "docker-credential-"
	// helperTimeout bounds one question to a helper.
	helperTimeout = 15 * time.Second
)

// askHelper asks a program on this machine for the credential of a host, by
// the protocol of github.com/docker/docker-credential-helpers. That the helper
// has none is no error: then nobody asks.
func askHelper(ctx context.Context, helper, host string) (authn.Authenticator, error) {
	// A name with a slash would be a path.
	if !regexp.MustCompile(`^[A-Za-z0-9._-]+$`).MatchString(helper) {
		return nil, &helperError{helper: oneLine(helper), err: errors.New("it has no valid name")}
	}
	ctx, cancel := context.WithTimeout(ctx, helperTimeout)
	defer cancel()
	server := host
	if host == dockerHub {
		server = "https://index.docker.io/v1/"
	}
	command := exec.CommandContext(ctx, helperPrefix+helper, "get") //nolint:gosec // the user's own configuration names the program
	command.Stdin = strings.NewReader(server)
	command.WaitDelay = time.Second
	var answer bytes.Buffer
	command.Stdout = &answer
	if err := command.Run(); err != nil {
		if strings.Contains(answer.String(), "credentials not found") {
			return authn.Anonymous, nil
		}
		return nil, &helperError{helper: helper, err: err}
	}
	var said struct {
		Username string `json:"Username"`
		Secret   string `json:"Secret"`
	}
	if err := json.Unmarshal(answer.Bytes(), &said); err != nil {
		return nil, &helperError{helper: helper, err: errors.New("its answer is not valid JSON")}
	}
	if said.Username == "<token>" {
		return authn.FromConfig(authn.AuthConfig{IdentityToken: said.Secret}), nil
	}
	return authn.FromConfig(authn.AuthConfig{Username: said.Username, Password: said.Secret}), nil
}

// helperError says that a helper gave no answer. It has no secret in it.
type helperError struct {
	helper string
	err    error
}

// Error implements error.
func (e *helperError) Error() string {
	return fmt.Sprintf("the credential helper %s%s failed: %v", helperPrefix, e.helper, e.err)
}
