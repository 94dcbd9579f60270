// Package signature answers: is this digest signed by keys that this cluster
// trusts?
//
// A release is signed as containers/image describes it (simple signing): an
// OpenPGP message, kept in a store under the digest, whose content claims that
// the digest is a certain image. Verify looks through the stores and returns a
// Release, the proof that the rest of the program asks for before it reads
// anything of the release.
//
// # As the cluster-version operator decides
//
// Honest signatures are accepted as the cluster-version operator (CVO) accepts
// them (library-go pkg/verify, cluster-version-operator pkg/cvo/cvo.go):
//
//   - One key of a keyring is enough, and every verifier-public-key-* keyring
//     must be satisfied, by one signature or by several.
//   - The signatures in ConfigMaps of the cluster come first. Then come the
//     stores of ClusterVersion spec.signatureStores, which replace those of the
//     release where they are set, also where the list is empty. Else come the
//     store-* of the release.
//   - Nine signatures of a store on the network are looked at.
//   - Stores are reached through the proxy of the cluster, where it has one
//     and this machine's environment names none, and with the certificate
//     authorities of its trusted-ca-bundle.
//   - A key that has expired may sign. The proof has a warning.
//
// # Deliberate differences
//
// What is stricter than CVO has its own reason in Error. Release.CVOAccepts and
// Error.CVOAccepts say what CVO would do with the same signatures.
//
//	input                                     here                     CVO
//	the signed reference is of another        WrongRepository          accepts: never compared
//	repository
//	the signed reference has another version  WrongVersion             accepts: never compared
//	than the release itself
//	the signed reference has no tag           NoSignedVersion, Unknown accepts
//	something follows the signed JSON         TrailingData             accepts
//	a field of it twice                       DuplicateField           accepts, the last one counts
//	a field in other letter case              FieldCase                accepts
//	SHA-1 or SHA-224 digest                   WeakDigest               accepts
//	MD5 or RIPEMD-160 digest                  WeakDigest               accepts MD5
//	signature dated in the future             SignatureNotYetValid     accepts
//	signature older than its key              KeyNotYetValid           accepts
//	attributes beside what is signed          UnsignedAttributes       accepts
//	more than 64 KiB, or that when unpacked   TooLarge                 reads all of it
//	compressed with bzip2                     UnsupportedSignature     accepts
//	any other form than that of `gpg --sign`  MalformedSignature       accepts some
//	version 3 signature, unknown algorithm    UnsupportedSignature,    accepts version 3
//	                                          Unknown
//	critical notation                         UnsupportedSignature,    accepts
//	                                          Unknown
//	a tag beside the digest in the pull spec  InvalidPullSpec          accepts
//	key of a type that CVO's library lacks    accepted (Ed25519)       ignores the key
//	second armor block of a keyring           accepted                 ignores the block
//	ca of spec.signatureStores                trusted, as the API says ignores it
//	stores of equal rank                      asked in order, each     asked at once
//	                                          with its share of time
//	a store that fails                        the next one is asked    asks it for the next signature;
//	                                                                   a failing list of ConfigMaps
//	                                                                   ends the search
//	keys and stores                           read from ConfigMap      read from the files of the
//	                                          release-verification,    release that it runs
//	                                          which CVO writes
//
// OpenPGP leaves three things that nobody can check: the file name and the
// exact date beside the signed bytes, and padding bits of a compressed stream.
// None of them is used.
//
// # Bounds
//
// Whatever a store can choose is bounded before it is read: an answer (64 KiB),
// what it unpacks to (64 KiB), its header (64 KiB), the time of a request
// (10 s), redirects (5), signatures (9 of a store, 100 of the ConfigMaps), and
// the time of all of it (two minutes). All signatures together cost less than
// 64 MiB of memory.
package signature
