# Built in: the files of this folder are all there is.
