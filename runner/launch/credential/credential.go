// Package credential answers: has a Secret or a ConfigMap a credential with which a check could write?
//
// The read-only guard recognizes a check by the token of its pod; it does not apply to another
// credential of the API server. [Of] recognizes the kinds of credentials that Kubernetes and
// OpenShift issue by the content of a Secret, [OfConfigMap] by that of a ConfigMap, [OfPod] in a manifest, and [Read] reads
// what a user may read of an object. A Secret without a known credential may have another one: a password, a key that signs
// certificates, or a credential that is encrypted.
package credential

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// The kinds of credentials, as they are named in a message.
const (
	ofAccount         = "a token of a ServiceAccount"
	toJoin            = "a bootstrap token"
	ofOAuth           = "an OAuth access token"
	kubeconfig        = "a kubeconfig with credentials"
	clientCertificate = "a client certificate of the cluster's own users"
)

// maxNested bounds how often a value is decoded: base64 in a kubeconfig in base64.
const maxNested = 3

// typeBootstrapToken is the type of a Secret with a bootstrap token (k8s.io/cluster-bootstrap/token/api).
const typeBootstrapToken = corev1.SecretType("bootstrap.kubernetes.io/token")

var (
	// webToken is a signed JSON web token (RFC 7519) in a text.
	webToken = regexp.MustCompile(`eyJ[A-Za-z0-9_-]+\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+`)
	// bootstrap is a whole bootstrap token (k8s.io/cluster-bootstrap/token/api, BootstrapTokenPattern).
	bootstrap = regexp.MustCompile(`^[a-z0-9]{6}\.[a-z0-9]{16}$`)
	// oauth is an access token of OpenShift's OAuth server in a text (openshift/oauth-server: 256 random bits
	// in base64 without padding).
	oauth = regexp.MustCompile(`sha256~[A-Za-z0-9_-]{43}`)
	// encoded is base64, also with line breaks, that is long enough for a credential.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/_-][A-Za-z0-9+/_\-\r\n]{31,}={0,2}`)
)

// Of describes the first known credential of a Secret; empty for none. The description has nothing of the content.
func Of(secret *corev1.Secret) string {
	switch {
	case secret.Type == corev1.SecretTypeServiceAccountToken:
		return ofAccount
	case secret.Type == typeBootstrapToken, len(secret.Data["token-id"]) > 0 && len(secret.Data["token-secret"]) > 0:
		return toJoin
	}
	for _, key := range slices.Sorted(maps.Keys(secret.Data)) {
		if found := in(secret.Data[key], maxNested); found != "" {
			return found
		}
	}
	return ""
}

// OfConfigMap is Of for a ConfigMap.
func OfConfigMap(config *corev1.ConfigMap) string {
	secret := corev1.Secret{Data: maps.Clone(config.BinaryData)}
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, text := range config.Data {
		secret.Data[key] = []byte(text)
	}
	return Of(&secret)
}

// OfPod is Of for what a manifest itself gives to the containers of a pod.
func OfPod(spec corev1.PodSpec) string {
	for _, container := range slices.Concat(spec.InitContainers, spec.Containers) {
		values := slices.Concat(container.Command, container.Args)
		for _, variable := range container.Env {
			values = append(values, variable.Value)
		}
		for _, value := range values {
			if found := in([]byte(value), maxNested); found != "" {
				return found
			}
		}
	}
	return ""
}

// in describes the first known credential of a value, and of what it has in base64.
func in(value []byte, nested int) string {
	switch {
	case hasAccountToken(value):
		return ofAccount
	case oauth.Match(value):
		return ofOAuth
	case bootstrap.Match(bytes.TrimSpace(value)):
		return toJoin
	case isKubeconfig(value):
		return kubeconfig
	case hasClientCertificate(value):
		return clientCertificate
	case nested == 0:
		return ""
	}
	for _, run := range encoded.FindAll(value, -1) {
		if found := inEncoded(run, nested-1); found != "" {
			return found
		}
	}
	return ""
}

// inEncoded is in for base64, which may be one text with line breaks, or end with a line.
func inEncoded(run []byte, nested int) string {
	texts := [][]byte{run}
	if lines := bytes.Fields(run); len(lines) > 1 {
		texts = append(texts, lines...)
	}
	for _, text := range texts {
		if decoded := decode(text); decoded != nil {
			if found := in(decoded, nested); found != "" {
				return found
			}
		}
	}
	return ""
}

// decode decodes base64, with either alphabet and with or without padding; nil for another text.
func decode(text []byte) []byte {
	plain := strings.NewReplacer("\r", "", "\n", "", "-", "+", "_", "/", "=", "").Replace(string(text))
	decoded, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return nil
	}
	return decoded
}

// hasAccountToken is true for a value with a token whose subject is a ServiceAccount, whatever its audience and
// its end: these are for the clock and the configuration of the API server.
func hasAccountToken(value []byte) bool {
	return slices.ContainsFunc(webToken.FindAllSubmatch(value, -1), func(parts [][]byte) bool {
		var claims struct {
			Subject string `json:"sub"`
		}
		return json.Unmarshal(decode(parts[1]), &claims) == nil && strings.HasPrefix(claims.Subject, "system:serviceaccount:")
	})
}

// isKubeconfig is true for a kubeconfig with a user who has more than the name of a file: a token, a key or a
// password, or a program or a plugin that gets one. One that has the names of files alone is a
// configuration for the account of the pod.
func isKubeconfig(value []byte) bool {
	if !bytes.Contains(value, []byte("users")) {
		return false
	}
	config, err := clientcmd.Load(value)
	if err != nil {
		return false
	}
	for _, user := range config.AuthInfos {
		if user.Token != "" || len(user.ClientKeyData) > 0 || user.Password != "" || user.Exec != nil || user.AuthProvider != nil {
			return true
		}
	}
	return false
}
