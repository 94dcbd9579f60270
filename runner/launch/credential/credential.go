// Package credential answers: does a Secret or a ConfigMap contain a credential with which a check could write?
//
// The read-only guard recognizes a check by the token of its pod; it does not apply to another credential of the API
// server. [Of] recognizes the kinds of credentials that Kubernetes and OpenShift issue by the content of a Secret,
// [OfConfigMap] by the content of a ConfigMap, [OfPod] in a manifest, and [Read] reads as much of an object as a user may
// read. A Secret without a known credential may still contain one: a password, a key that signs certificates, or a
// credential that is encrypted.
package credential

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/runner/launch/inventory"
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

// OfPod is like Of, for the content that a manifest itself gives to the containers of a pod.
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

// maxOfOneName bounds the Secrets or ConfigMaps of one name, in all namespaces, whose content is read.
const maxOfOneName = 20

// Resource is the resource of a kind that may hold credentials; empty for another kind.
func Resource(kind string) string {
	return map[string]string{inventory.SecretKind: "secrets", inventory.ConfigMapKind: "configmaps"}[kind]
}

// Holds is true for a reference to an object that may hold a credential: a Secret, and a ConfigMap but for those with the
// certificates of authorities that Kubernetes and OpenShift write into each namespace, and write again when they are changed.
func Holds(object inventory.Reference) bool {
	published := object.Kind == inventory.ConfigMapKind &&
		slices.Contains([]string{"kube-root-ca.crt", "openshift-service-ca.crt"}, object.Name)
	return Resource(object.Kind) != "" && object.Name != "" && !published
}

// Review has what a user may know about a Secret or ConfigMap or, for a reference without a namespace, about all objects
// of that name. It contains nothing of the content.
type Review struct {
	// Credential describes a known credential; empty for none.
	Credential string
	// Type is why not even the type is known, and Content why the content is not known. A ConfigMap has no type: if its
	// content is unknown, nothing is known about it.
	Type, Content error

	existing map[string]types.UID
}

// Needs are the requests of [Read].
func Needs(secret inventory.Reference) []access.Request {
	return access.Verbs(access.Request{Resource: Resource(secret.Kind), Namespace: secret.Namespace, Name: secret.Name}, "list", "get")
}

// Read reads the type of a Secret and, unless it is a known type, its content, or the content of a ConfigMap. An object
// that does not exist has no credential. Read returns an error if the API server did not respond; requests that it
// forbids are in the Review.
func Read(ctx context.Context, client kubernetes.Interface, objects metadata.Interface, secret inventory.Reference) (Review, error) {
	if len(content.IsPathSegmentName(secret.Name)) > 0 {
		return Review{}, nil // the API server has no object of this name
	}
	r := reader{client: client, objects: objects, secret: secret}
	review := Review{existing: map[string]types.UID{}}
	if secret.Kind == inventory.ConfigMapKind {
		return r.ofConfigMap(ctx, review)
	}
	tokens, err := r.list(ctx, fields.Set{metav1.ObjectNameField: secret.Name, "type": string(corev1.SecretTypeServiceAccountToken)})
	switch {
	case apierrors.IsForbidden(err):
		review.Type = err
	case err != nil:
		return Review{}, err
	case len(tokens) > 0:
		review.note(tokens)
		review.Credential = ofAccount
		return review, nil
	}
	if secret.Namespace != "" {
		return r.content(ctx, review, secret.Namespace)
	}
	return r.everywhere(ctx, review)
}

// ofConfigMap reviews a ConfigMap, or the ConfigMaps of that name in all namespaces. If it is created later, its
// content is reviewed then.
func (r reader) ofConfigMap(ctx context.Context, review Review) (Review, error) {
	read := r.everywhere
	if r.secret.Namespace != "" {
		read = func(ctx context.Context, review Review) (Review, error) {
			return r.content(ctx, review, r.secret.Namespace)
		}
	}
	review, err := read(ctx, review)
	if apierrors.IsForbidden(err) {
		return Review{Type: err, Content: err}, nil
	}
	review.existing = nil
	return review, err
}

type reader struct {
	client  kubernetes.Interface
	objects metadata.Interface
	secret  inventory.Reference
}

func (r reader) list(ctx context.Context, selected fields.Set) ([]metav1.PartialObjectMetadata, error) {
	found, err := retry.Get(ctx, func(ctx context.Context) (*metav1.PartialObjectMetadataList, error) {
		return r.objects.Resource(corev1.SchemeGroupVersion.WithResource(Resource(r.secret.Kind))).Namespace(r.secret.Namespace).List(ctx,
			metav1.ListOptions{
				FieldSelector: selected.String(), Limit: maxOfOneName + 1,
			})
	})
	if err != nil {
		return nil, fmt.Errorf("could not read the type of %s: %w", r.secret, err)
	}
	return found.Items, nil
}

// untyped is true if not even the type may be read.
func (r Review) untyped() bool { return r.Type != nil }

// everywhere reads the objects of the name in all namespaces.
func (r reader) everywhere(ctx context.Context, review Review) (Review, error) {
	if review.untyped() {
		review.Content = review.Type
		return review, nil
	}
	named, err := r.list(ctx, fields.Set{metav1.ObjectNameField: r.secret.Name})
	if err != nil {
		return Review{}, err
	}
	review.note(named)
	if len(named) > maxOfOneName {
		review.Content = fmt.Errorf("more than %d namespaces have a %s of this name", maxOfOneName, r.secret.Kind)
		return review, nil
	}
	for _, one := range named {
		if review, err = r.content(ctx, review, one.Namespace); err != nil || review.Credential != "" || review.Type != nil {
			return review, err
		}
	}
	return review, nil
}

func (r reader) content(ctx context.Context, review Review, namespace string) (Review, error) {
	uid, found, err := r.get(ctx, namespace)
	switch {
	case apierrors.IsNotFound(err):
		delete(review.existing, namespace)
		review.Type = nil
		return review, nil
	case apierrors.IsForbidden(err) && r.secret.Kind == inventory.ConfigMapKind:
		review.Type, review.Content = err, err
		return review, nil
	case apierrors.IsForbidden(err):
		return r.withoutContent(ctx, review, fmt.Errorf("could not read %s: %w", r.secret, err))
	case err != nil:
		return Review{}, fmt.Errorf("could not read %s: %w", r.secret, err)
	}
	review.existing[namespace], review.Type, review.Credential = uid, nil, found
	return review, nil
}

// get reads the object, and returns its UID and a description of its first known credential.
func (r reader) get(ctx context.Context, namespace string) (types.UID, string, error) {
	if r.secret.Kind == inventory.ConfigMapKind {
		config, err := retry.Get(ctx, func(ctx context.Context) (*corev1.ConfigMap, error) {
			return r.client.CoreV1().ConfigMaps(namespace).Get(ctx, r.secret.Name, metav1.GetOptions{})
		})
		if err != nil {
			return "", "", err
		}
		return config.UID, OfConfigMap(config), nil
	}
	secret, err := retry.Get(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return r.client.CoreV1().Secrets(namespace).Get(ctx, r.secret.Name, metav1.GetOptions{})
	})
	if err != nil {
		return "", "", err
	}
	return secret.UID, Of(secret), nil
}

// withoutContent notes whether the Secret exists, where the user may list it.
func (r reader) withoutContent(ctx context.Context, review Review, cause error) (Review, error) {
	review.Content = cause
	if review.untyped() {
		return review, nil
	}
	named, err := r.list(ctx, fields.Set{metav1.ObjectNameField: r.secret.Name})
	if err != nil {
		return Review{}, err
	}
	review.note(named)
	return review, nil
}

func (r *Review) note(secrets []metav1.PartialObjectMetadata) {
	for _, secret := range secrets {
		r.existing[secret.Namespace] = secret.UID
	}
}

// Changed describes how a Secret differs from before the checks started: it contains a known credential now, it was
// created, or it cannot be read any more. It is empty for a Secret that was deleted, and for one that was updated and
// contains no known credential.
func (r Review) Changed(now Review) string {
	var created []string
	for _, namespace := range slices.Sorted(maps.Keys(now.existing)) {
		if now.existing[namespace] != r.existing[namespace] {
			created = append(created, namespace)
		}
	}
	switch {
	case now.Credential != "" && r.Credential == "":
		return "has " + now.Credential + " now"
	case now.Type != nil && r.Type == nil:
		return "could be read before, but not any more: " + now.Type.Error()
	case now.Content != nil && r.Content == nil:
		return "could be read before, but not any more: " + now.Content.Error()
	case len(created) > 0 && r.Type == nil:
		return "was created meanwhile in namespace " + strings.Join(created, ", ")
	}
	return ""
}

// hasClientCertificate is true for a value with a certificate in PEM by which a client is one of the users or
// groups of Kubernetes itself. It counts without its key, which may be in another Secret.
func hasClientCertificate(value []byte) bool {
	for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		if certificate, err := x509.ParseCertificate(block.Bytes); err == nil && isClient(certificate) && isOwnUser(certificate) {
			return true
		}
	}
	return false
}

// isClient is false for the certificate of an authority, and for one of servers alone.
func isClient(certificate *x509.Certificate) bool {
	usages := certificate.ExtKeyUsage
	return !certificate.IsCA && (len(usages) == 0 || slices.Contains(usages, x509.ExtKeyUsageClientAuth) ||
		slices.Contains(usages, x509.ExtKeyUsageAny))
}

// isOwnUser is true for a certificate whose user, or one of whose groups, is reserved for Kubernetes, such as
// system:masters, or is the administrator or the front proxy that kubeadm creates.
func isOwnUser(certificate *x509.Certificate) bool {
	return slices.ContainsFunc(append(slices.Clone(certificate.Subject.Organization), certificate.Subject.CommonName), func(name string) bool {
		return strings.HasPrefix(name, "system:") || slices.Contains([]string{"kubeadm:cluster-admins", "front-proxy-client"}, name)
	})
}
