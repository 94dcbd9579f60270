package registry

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/openshift/update-preflight/collector/words"
)

// maxAuthFile bounds a credentials file, in bytes, like a Secret (Kubernetes
// pkg/apis/core, MaxSecretSize).
const maxAuthFile = 1 << 20

// DockerHub is the registry of references without a host.
const DockerHub = "docker.io"

// maxName bounds a name of a file in a message, in bytes.
const maxName = 200

// store is a set of credentials, by registry, namespace or repository.
type store struct {
	// name identifies the store in messages.
	name string
	// cluster is true for the pull secret that the nodes have.
	cluster bool
	entries map[string]authn.AuthConfig
	// helper is the credential helper for all hosts, helpers are those for single
	// hosts. Both come only from the user's files, never from the pull secret.
	helper  string
	helpers map[string]string
}

// credential is one credential of a store. The zero value is anonymous access.
type credential struct {
	store store
	key   string
	entry authn.AuthConfig
	// helper is the credential helper that provides the entry; "" for none.
	helper string
}

// String describes the origin of the credential.
func (c credential) String() string {
	switch {
	case c.key == "":
		return "no credential"
	case c.helper != "":
		return fmt.Sprintf("the credential of %s%s for %q", helperPrefix, c.helper, c.key)
	}
	return fmt.Sprintf("the entry %q of %s", c.key, c.store.name)
}

func (c credential) authenticator(ctx context.Context) (authn.Authenticator, error) {
	if c.key == "" {
		return authn.Anonymous, nil
	}
	if c.helper != "" {
		return callHelper(ctx, c.helper, c.key)
	}
	return authn.FromConfig(c.entry), nil
}

// find selects the longest key that covers the repository: its full name, then
// each namespace, then the host (containers/image pkg/docker/config,
// authKeysForKey). A credential helper is keyed by host.
func (s store) find(repository string) (credential, bool) {
	host, _, _ := strings.Cut(repository, "/")
	for key := repository; key != ""; key = parent(key) {
		if entry, ok := s.entries[key]; ok {
			return credential{store: s, key: key, entry: entry}, true
		}
	}
	if helper := cmp.Or(s.helpers[host], s.helper); helper != "" {
		return credential{store: s, key: host, helper: helper}, true
	}
	return credential{}, false
}

func parent(key string) string {
	if end := strings.LastIndex(key, "/"); end > 0 {
		return key[:end]
	}
	return ""
}

// readAuthFile reads a credentials file of the user. A missing file is empty.
func readAuthFile(path string) (store, error) {
	file, err := os.Open(path) //nolint:gosec // the user names the file
	if errors.Is(err, fs.ErrNotExist) {
		return store{}, nil
	}
	if err != nil {
		return store{}, fmt.Errorf("the credentials in %q cannot be read: %w", path, err)
	}
	defer file.Close() //nolint:errcheck // nothing was written
	content, err := io.ReadAll(io.LimitReader(file, maxAuthFile+1))
	if err != nil {
		return store{}, fmt.Errorf("the credentials in %q cannot be read: %w", path, err)
	}
	own, err := parseAuth(fmt.Sprintf("%q", path), content)
	if err != nil {
		return store{}, err
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

// parseAuth parses credentials. An empty entry is ignored. An entry that cannot be
// decoded invalidates the file, since a shorter key would be selected in its
// place. Errors repeat no content of the file.
func parseAuth(name string, content []byte) (store, error) {
	if len(content) > maxAuthFile {
		return store{}, fmt.Errorf("the credentials in %s have more than %d bytes", name, maxAuthFile)
	}
	var file authFile
	if err := json.Unmarshal(content, &file); err != nil {
		return store{}, fmt.Errorf("the credentials in %s are not valid JSON of the expected form", name)
	}
	parsed := store{name: name, entries: map[string]authn.AuthConfig{}, helper: file.CredsStore, helpers: file.CredHelpers}
	for key, entry := range file.Auths {
		config := authn.AuthConfig{Username: entry.Username, Password: entry.Password, IdentityToken: entry.IdentityToken, RegistryToken: entry.RegistryToken}
		if entry.Auth != "" {
			user, password, ok := decodeAuth(entry.Auth)
			if !ok {
				return store{}, fmt.Errorf("the entry %q of %s is not base64 of USER:PASSWORD", words.Line(key, maxName), name)
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
