// Package credential answers: which credential is there for a repository?
//
// [ReadAuthFile] and [ParseAuth] return a [Store], and [Store.Find] the [Credential] of the
// longest key that covers a repository. A credential helper of this machine is called when
// its credential is used.
package credential

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"k8s.io/apimachinery/pkg/types"

	"github.com/openshift/update-preflight/collector/words"
	"github.com/openshift/update-preflight/signature/localfile"
)

// maxAuthFile bounds a credentials file, in bytes, like a Secret (Kubernetes pkg/apis/core, MaxSecretSize).
const maxAuthFile = 1 << 20

// DockerHub is the registry of references without a host.
const DockerHub = "docker.io"

// maxName bounds a name of a file in a message, in bytes.
const maxName = 200

// Store is a set of credentials, by registry, namespace or repository.
type Store struct {
	name string
	// Secret is the pull secret that the nodes have; nil for the user's own credentials.
	Secret  *types.NamespacedName
	entries map[string]authn.AuthConfig
	// Helper is the credential helper for all hosts, helpers are those for single
	// hosts. Both come only from the user's files, never from the pull secret.
	Helper  string
	Helpers map[string]string
}

// Credential is one credential of a store. The zero value is anonymous access.
type Credential struct {
	Store Store
	Key   string
	entry authn.AuthConfig
	// helper is the credential helper that provides the entry; "" for none.
	helper string
}

// String describes the origin of the credential.
func (c Credential) String() string {
	switch {
	case c.Key == "":
		return "no credential"
	case c.helper != "":
		return fmt.Sprintf("the credential of %s%s for %q", helperPrefix, c.helper, c.Key)
	}
	return fmt.Sprintf("the entry %q of %s", c.Key, c.Store.name)
}

// Authenticator returns what registries get; it calls the credential helper, if there is one.
func (c Credential) Authenticator(ctx context.Context) (authn.Authenticator, error) {
	if c.Key == "" {
		return authn.Anonymous, nil
	}
	if c.helper != "" {
		return callHelper(ctx, c.helper, c.Key)
	}
	return authn.FromConfig(c.entry), nil
}

// Find selects the longest key that covers the repository: its full name, then
// each namespace, then the host (containers/image pkg/docker/config,
// authKeysForKey). A credential helper is keyed by host.
func (s Store) Find(repository string) (Credential, bool) {
	host, _, _ := strings.Cut(repository, "/")
	for key := repository; key != ""; key = parent(key) {
		if entry, ok := s.entries[key]; ok {
			return Credential{Store: s, Key: key, entry: entry}, true
		}
	}
	if helper := cmp.Or(s.Helpers[host], s.Helper); helper != "" {
		return Credential{Store: s, Key: host, helper: helper}, true
	}
	return Credential{}, false
}

func parent(key string) string {
	if end := strings.LastIndex(key, "/"); end > 0 {
		return key[:end]
	}
	return ""
}

// ReadAuthFile reads a credentials file of the user, or the pipe of a process substitution, until ctx ends. A
// missing file is empty.
func ReadAuthFile(ctx context.Context, path string) (Store, error) {
	content, err := localfile.Read(ctx, path, maxAuthFile)
	if errors.Is(err, fs.ErrNotExist) {
		return Store{}, nil
	}
	if err != nil {
		return Store{}, fmt.Errorf("the credentials in %q cannot be read: %w", path, err)
	}
	own, err := ParseAuth(fmt.Sprintf("%q", path), content)
	if err != nil {
		return Store{}, err
	}
	return own, nil
}

// authFile is the common format of containers-auth.json(5), Docker's config.json
// and a Secret of type kubernetes.io/dockerconfigjson.
type authFile struct {
	Auths map[string]struct {
		Auth          string `json:"auth"`
		Username      string `json:"username"`
		Password      string `json:"password"`
		IdentityToken string `json:"identitytoken"`
		RegistryToken string `json:"registrytoken"`
	} `json:"auths"`
	CredHelpers map[string]string `json:"credHelpers"`
	CredsStore  string            `json:"credsStore"`
}

// ParseAuth parses credentials. An empty entry is ignored. An entry that cannot be
// decoded invalidates the file, since a shorter key would be selected in its
// place. Errors repeat no content of the file.
func ParseAuth(name string, content []byte) (Store, error) {
	if len(content) > maxAuthFile {
		return Store{}, fmt.Errorf("the credentials in %s have more than %d bytes", name, maxAuthFile)
	}
	var file authFile
	if err := json.Unmarshal(content, &file); err != nil {
		return Store{}, fmt.Errorf("the credentials in %s are not valid JSON of the expected form", name)
	}
	parsed := Store{name: name, entries: map[string]authn.AuthConfig{}, Helper: file.CredsStore, Helpers: file.CredHelpers}
	for key, entry := range file.Auths {
		config := authn.AuthConfig{
			Username: entry.Username, Password: entry.Password, IdentityToken: entry.IdentityToken,
			RegistryToken: entry.RegistryToken,
		}
		if entry.Auth != "" {
			user, password, ok := decodeAuth(entry.Auth)
			if !ok {
				return Store{}, fmt.Errorf("the entry %q of %s is not base64 of USER:PASSWORD", words.Line(key, maxName), name)
			}
			config.Username, config.Password = user, password
		}
		if config != (authn.AuthConfig{}) {
			parsed.entries[normalize(key)] = config
		}
	}
	return parsed, nil
}

func decodeAuth(auth string) (user, password string, ok bool) {
	decoded, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(strings.TrimSpace(auth), "="))
	if err != nil {
		return "", "", false
	}
	user, password, ok = strings.Cut(string(decoded), ":")
	return user, strings.TrimRight(password, "\x00"), ok
}

// normalize converts the URL keys of older tools to today's keys (containers/image
// pkg/docker/config, normalizeAuthFileKey).
func normalize(key string) string {
	bare := strings.TrimPrefix(strings.TrimPrefix(key, "https://"), "http://")
	if bare != key {
		bare, _, _ = strings.Cut(bare, "/")
	}
	host, rest, _ := strings.Cut(strings.TrimSuffix(bare, "/"), "/")
	if host == "index.docker.io" || host == "registry-1.docker.io" {
		host = DockerHub
	}
	if rest == "" || rest == "v1" || rest == "v2" {
		return host
	}
	return host + "/" + rest
}

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
