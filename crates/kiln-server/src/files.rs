//! The real file system behind the configuration.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use kiln_base::glob::glob_match;
use kiln_command::config::ConfigFiles;

/// Files as the operating system has them.
pub(crate) struct SystemFiles;

impl ConfigFiles for SystemFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        fs::read(path)
    }

    fn read_stdin(&self) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        io::stdin().read_to_end(&mut text)?;
        Ok(text)
    }

    fn matching(&self, pattern: &str) -> io::Result<Vec<PathBuf>> {
        let pattern = Path::new(pattern);
        let folder = pattern.parent().filter(|folder| !folder.as_os_str().is_empty());
        let name = pattern.file_name().unwrap_or_default().as_encoded_bytes();
        if !name.iter().any(|byte| b"*?[".contains(byte)) {
            return Ok(vec![pattern.to_path_buf()]);
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(folder.unwrap_or(Path::new(".")))? {
            let entry = entry?;
            if glob_match(name, entry.file_name().as_encoded_bytes(), false) {
                found.push(entry.path());
            }
        }
        found.sort();
        Ok(found)
    }

    fn current_dir(&self) -> io::Result<PathBuf> {
        std::env::current_dir()
    }

    fn change_dir(&self, path: &Path) -> io::Result<PathBuf> {
        std::env::set_current_dir(path)?;
        std::env::current_dir()
    }

    fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".tmp-{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let written = fs::File::create(&beside).and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_all()
        });
        if let Err(error) = written.and_then(|()| fs::rename(&beside, path)) {
            drop(fs::remove_file(&beside));
            return Err(error);
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        fs::File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}
