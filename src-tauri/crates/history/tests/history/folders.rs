use std::path::{Path, PathBuf};

use crate::{open, records};

#[tokio::test]
async fn folders_stay_in_the_order_in_which_they_were_added() {
    let place = tempfile::tempdir().unwrap();
    let history = open(place.path()).await;
    for folder in ["/z", "/a", "/m n"] {
        assert!(
            history
                .add_folder(Path::new(folder), records::at(1))
                .await
                .unwrap()
        );
    }
    assert!(
        !history
            .add_folder(Path::new("/z"), records::at(2))
            .await
            .unwrap(),
        "it was there"
    );
    assert!(history.remove_folder(Path::new("/a")).await.unwrap());
    assert!(
        !history.remove_folder(Path::new("/a")).await.unwrap(),
        "it is gone already"
    );

    let again = open(place.path()).await;
    assert_eq!(
        again.folders().await.unwrap(),
        [PathBuf::from("/z"), "/m n".into()]
    );
}

#[cfg(unix)]
#[tokio::test]
async fn a_folder_may_have_any_name() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let place = tempfile::tempdir().unwrap();
    let history = open(place.path()).await;
    let odd = Path::new(OsStr::from_bytes(b"/m\xff\n'; DROP TABLE folder; --"));
    assert!(history.add_folder(odd, records::at(1)).await.unwrap());
    assert_eq!(history.folders().await.unwrap(), [odd]);
    assert!(history.remove_folder(odd).await.unwrap());
    assert!(history.folders().await.unwrap().is_empty());
}
