//! Encrypts values at rest with master keys that are not in the store.
//!
//! XChaCha20-Poly1305. The owner of a sealed value (organisation, kind, name) is authenticated with it, so a row copied
//! to another name or organisation cannot be opened. Several keys can be in use: the first one seals, and every value
//! names the key that opens it.
//!
//! Not here: the records that hold sealed values (`sealed.rs`).

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::STANDARD as BASE64;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};
use stepwell_store::OrgId;

pub const KEY_BYTES: usize = 32;
const NONCE_BYTES: usize = 24;
/// Bytes of a key's hash that identify it.
const ID_BYTES: usize = 4;
/// The most keys in use at a time.
const MOST_KEYS: usize = 100;

const NO_KEY: &str = "there is no master key to seal it with: set the same one on every node with STEPWELL_MASTER_KEY \
                      or STEPWELL_MASTER_KEY_FILE (create one with `openssl rand -base64 32`)";

/// The owner of a sealed value.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    pub org: OrgId,
    pub kind: &'a str,
    pub name: &'a str,
}

/// An encrypted value.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Sealed {
    /// The id of the key that opens it.
    pub key: String,
    /// The nonce and the ciphertext, as base64.
    data: String,
}

/// Why a sealed value cannot be opened.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Locked {
    #[error("it was sealed with the master key {0}, which this node does not have")]
    OtherKey(String),
    #[error("the stored value was damaged, or belongs to another name or organisation")]
    Tampered,
}

struct Key {
    id: String,
    cipher: XChaCha20Poly1305,
}

impl Key {
    fn new(bytes: [u8; KEY_BYTES]) -> Key {
        let mut hash = Sha256::new();
        hash.update(b"stepwell master key");
        hash.update(bytes);
        let id = hash.finalize().iter().take(ID_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Key { id, cipher: XChaCha20Poly1305::new(&bytes.into()) }
    }
}

/// The master keys of this node. Has no `Debug`.
#[derive(Default)]
pub struct Vault {
    keys: RwLock<Vec<Arc<Key>>>,
    /// The file in which a first key is created when it is needed.
    file: Option<PathBuf>,
}

impl Vault {
    /// Reads keys from text: each has 32 bytes as base64 or hexadecimal digits, separated by commas or white space. The
    /// error does not repeat the text.
    pub fn read(text: &str) -> Result<Vault, String> {
        let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default());
        let words = lines.flat_map(|line| line.split(|c: char| c == ',' || c.is_whitespace()));
        let mut keys = Vec::new();
        for (n, word) in words.filter(|word| !word.is_empty()).enumerate() {
            let bytes = decoded(word).ok_or_else(|| {
                let which = if n == 0 { "the master key".to_string() } else { format!("master key {}", n + 1) };
                format!(
                    "{which} is not {KEY_BYTES} bytes as base64 or hexadecimal digits; create one \
                         with `openssl rand -base64 32`"
                )
            })?;
            keys.push(Arc::new(Key::new(bytes)));
        }
        match keys.len() {
            0 => Err("it contains no master key".into()),
            n if n > MOST_KEYS => Err(format!("there are more than {MOST_KEYS} master keys")),
            _ => Ok(Vault { keys: RwLock::new(keys), file: None }),
        }
    }

    /// Reads keys from a file. If the file does not exist, a key is created when the first value is sealed.
    pub fn made_when_needed(file: &Path) -> Result<Vault, String> {
        match std::fs::read_to_string(file) {
            Ok(text) => Vault::read(&text).map_err(|why| format!("{}: {why}", file.display())),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                Ok(Vault { keys: RwLock::default(), file: Some(file.to_path_buf()) })
            }
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }

    fn keys(&self) -> Vec<Arc<Key>> {
        let known = self.keys.read().expect("no thread panics while it holds the lock on keys").clone();
        let Some(file) = self.file.as_deref().filter(|_| known.is_empty()) else { return known };
        // Another vault for the same file may have created it since.
        let Some(read) = std::fs::read_to_string(file).ok().and_then(|text| Vault::read(&text).ok()) else {
            return known;
        };
        let found = read.keys();
        *self.keys.write().expect("no thread panics while it holds the lock on keys") = found.clone();
        found
    }

    /// The ids of the keys. The first one seals.
    pub fn ids(&self) -> Vec<String> {
        self.keys().iter().map(|key| key.id.clone()).collect()
    }

    /// Ensures that there is a key to seal with. Creates one from these bytes if necessary.
    pub fn ready(&self, fresh: [u8; KEY_BYTES]) -> Result<(), String> {
        let mut keys = self.keys.write().expect("no thread panics while it holds the lock on keys");
        if !keys.is_empty() {
            return Ok(());
        }
        let file = self.file.as_deref().ok_or(NO_KEY)?;
        let cannot = |error: std::io::Error| format!("cannot store a master key in {}: {error}", file.display());
        match create(file, &BASE64.encode(fresh)) {
            Ok(()) => keys.push(Arc::new(Key::new(fresh))),
            // Another process created it first.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let text = std::fs::read_to_string(file).map_err(cannot)?;
                keys.extend(Vault::read(&text).map_err(|why| format!("{}: {why}", file.display()))?.keys());
            }
            Err(error) => return Err(cannot(error)),
        }
        Ok(())
    }

    /// Encrypts a text for its owner. The nonce must be random.
    pub fn seal(&self, owner: Owner<'_>, nonce: [u8; NONCE_BYTES], text: &str) -> Result<Sealed, String> {
        let keys = self.keys();
        let key = keys.first().ok_or(NO_KEY)?;
        let payload = Payload { msg: text.as_bytes(), aad: &owner.bytes() };
        let sealed =
            key.cipher.encrypt(&XNonce::from(nonce), payload).map_err(|_| "the value is too long to be sealed")?;
        let data = BASE64.encode([nonce.as_slice(), &sealed].concat());
        Ok(Sealed { key: key.id.clone(), data })
    }

    /// Decrypts a sealed value. Fails if it was sealed for another owner.
    pub fn open(&self, owner: Owner<'_>, sealed: &Sealed) -> Result<String, Locked> {
        let keys = self.keys();
        let other = || Locked::OtherKey(sealed.key.clone());
        let key = keys.iter().find(|key| key.id == sealed.key).ok_or_else(other)?;
        let bytes = BASE64.decode(&sealed.data).map_err(|_| Locked::Tampered)?;
        let (nonce, data) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or(Locked::Tampered)?;
        let payload = Payload { msg: data, aad: &owner.bytes() };
        let opened = key.cipher.decrypt(&XNonce::from(*nonce), payload).map_err(|_| Locked::Tampered)?;
        String::from_utf8(opened).map_err(|_| Locked::Tampered)
    }
}

impl Owner<'_> {
    /// An encoding that differs for any two owners.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"stepwell sealed 1".to_vec();
        bytes.extend(self.org.0.to_be_bytes());
        for part in [self.kind, self.name] {
            bytes.extend((part.len() as u64).to_be_bytes());
            bytes.extend(part.as_bytes());
        }
        bytes
    }
}

fn decoded(word: &str) -> Option<[u8; KEY_BYTES]> {
    if word.len() == 2 * KEY_BYTES && word.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        let digits = (0..KEY_BYTES).map(|n| u8::from_str_radix(&word[2 * n..2 * n + 2], 16).ok());
        return digits.collect::<Option<Vec<u8>>>()?.try_into().ok();
    }
    let padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    let read = |alphabet| GeneralPurpose::new(alphabet, padding).decode(word).ok();
    read(&STANDARD).or_else(|| read(&URL_SAFE))?.try_into().ok()
}

/// Creates a file that only its owner can read. It is on disk before the key in it seals anything.
fn create(file: &Path, text: &str) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // Written to a temporary file first: a crash must not leave half a key in the final one.
    let temporary = file.with_extension("key.new");
    match std::fs::remove_file(&temporary) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut written = options.open(&temporary)?;
    writeln!(written, "{text}")?;
    written.sync_all()?;
    // Unlike a rename, this does not replace a file that another process created.
    let placed = std::fs::hard_link(&temporary, file);
    std::fs::remove_file(&temporary)?;
    placed?;
    if let Some(directory) = file.parent() {
        std::fs::File::open(directory)?.sync_all()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const NEW: &str = "//79/Pv6+fj39vX08/Lx8O/u7ezr6uno5+bl5OPi4eA=";

    fn owner<'a>(org: i64, kind: &'a str, name: &'a str) -> Owner<'a> {
        Owner { org: OrgId(org), kind, name }
    }

    fn vault(text: &str) -> Vault {
        Vault::read(text).unwrap_or_else(|why| panic!("{why}"))
    }

    #[test]
    fn a_sealed_value_opens_only_for_its_owner() {
        let vault = vault(OLD);
        let sealed = vault.seal(owner(1, "secret", "KEY"), [7; 24], "the secret").unwrap();
        assert_eq!(vault.open(owner(1, "secret", "KEY"), &sealed).unwrap(), "the secret");
        for moved in [
            owner(2, "secret", "KEY"),
            owner(1, "connection", "KEY"),
            owner(1, "secret", "KEZ"),
            owner(1, "secretK", "EY"),
        ] {
            assert_eq!(vault.open(moved, &sealed), Err(Locked::Tampered));
        }
    }

    #[test]
    fn a_flipped_bit_is_detected() {
        let vault = vault(OLD);
        let sealed = vault.seal(owner(1, "secret", "KEY"), [7; 24], "the secret").unwrap();
        let bytes = BASE64.decode(&sealed.data).unwrap();
        for n in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[n] ^= 1;
            let flipped = Sealed { data: BASE64.encode(flipped), ..sealed.clone() };
            assert_eq!(vault.open(owner(1, "secret", "KEY"), &flipped), Err(Locked::Tampered), "byte {n}");
        }
        for data in ["", "AAAA", "not base64"] {
            let short = Sealed { data: data.into(), ..sealed.clone() };
            assert_eq!(vault.open(owner(1, "secret", "KEY"), &short), Err(Locked::Tampered));
        }
    }

    #[test]
    fn the_first_key_seals_and_every_key_opens_what_it_sealed() {
        let (old, both, new) = (vault(OLD), vault(&format!("{NEW},{OLD}")), vault(NEW));
        let at = owner(1, "secret", "KEY");
        let before = old.seal(at, [1; 24], "one").unwrap();
        let after = both.seal(at, [2; 24], "two").unwrap();
        assert_eq!(both.open(at, &before).unwrap(), "one");
        assert_eq!(new.open(at, &after).unwrap(), "two");
        assert_eq!(new.open(at, &before), Err(Locked::OtherKey(before.key.clone())));
        assert_eq!(old.open(at, &after), Err(Locked::OtherKey(after.key.clone())));
        // A value with the id of another key does not open.
        let renamed = Sealed { key: new.ids()[0].clone(), ..before };
        assert_eq!(new.open(at, &renamed), Err(Locked::Tampered));
    }

    #[test]
    fn keys_are_read_in_either_form_and_errors_do_not_repeat_them() {
        let ids = |text: &str| vault(text).ids();
        assert_eq!(ids(OLD), ids(&BASE64.encode(decoded(OLD).unwrap())));
        assert_eq!(ids(OLD), ids(&OLD.to_uppercase()));
        assert_eq!(ids(NEW), ids(&NEW.replace('/', "_").replace('+', "-").replace('=', "")));
        assert_eq!(ids(&format!("# since May\n{NEW}\n\n{OLD} # older\n")), ids(&format!("{NEW}, {OLD}")));
        for wrong in ["", "  \n# nothing\n", "hunter2hunter2", &OLD[2..], &format!("{OLD},hunter2hunter2")] {
            let Err(why) = Vault::read(wrong) else { panic!("{wrong} is not a key") };
            assert!(!why.contains("hunter2") && !why.contains("0405060708"), "{why}");
        }
    }

    #[test]
    fn a_key_is_created_when_it_is_needed_and_only_once() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("master.key");
        let (vault, other) = (Vault::made_when_needed(&file).unwrap(), Vault::made_when_needed(&file).unwrap());
        assert!(vault.seal(owner(1, "secret", "KEY"), [1; 24], "x").is_err());
        assert!(!file.exists());
        vault.ready([1; 32]).unwrap();
        let sealed = vault.seal(owner(1, "secret", "KEY"), [1; 24], "x").unwrap();
        assert_eq!(other.open(owner(1, "secret", "KEY"), &sealed).unwrap(), "x");
        other.ready([2; 32]).unwrap();
        assert_eq!(vault.ids(), other.ids());
        assert_eq!(vault.ids(), Vault::made_when_needed(&file).unwrap().ids());
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
        assert!(Vault::default().ready([1; 32]).unwrap_err().contains("STEPWELL_MASTER_KEY"));
    }
}
